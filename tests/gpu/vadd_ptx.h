/* SPDX-License-Identifier: MIT */
/* A kernel to launch beside what is measured: y = a + b, f32, 256 a block. */
#ifndef AIR_TEST_VADD_PTX_H
#define AIR_TEST_VADD_PTX_H

static const char vadd_ptx[] =
	".version 7.8\n.target sm_80\n.address_size 64\n"
	".visible .entry vadd(.param .u64 y, .param .u64 a, .param .u64 b)\n"
	"{\n"
	".reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %d<8>;\n"
	"ld.param.u64 %d0, [y]; ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];\n"
	"mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x;\n"
	"mad.lo.u32 %r2, %r0, 256, %r1;\n"
	"mul.wide.u32 %d3, %r2, 4;\n"
	"add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3; add.u64 %d6, %d0, %d3;\n"
	"ld.global.f32 %f0, [%d4]; ld.global.f32 %f1, [%d5];\n"
	"add.f32 %f2, %f0, %f1; st.global.f32 [%d6], %f2;\n"
	"ret;\n}\n";

#endif /* AIR_TEST_VADD_PTX_H */
