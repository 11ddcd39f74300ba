/* SPDX-License-Identifier: MIT */
/*
 * The resident kernel: what its host part (kernel.c, executor.c) and its device
 * part (resident.cu) agree on.
 *
 * The kernel is a grid of one block a multiprocessor that stays on the GPU.
 * Its first blocks are leaders: each serves one ring that is attached to it,
 * in order, reading submissions from and writing completions to the ring's own
 * pages in host memory. The others are helpers: they take shares of operators
 * too large for one block, and runs of UNORDERED submissions.
 *
 * A ring belongs to the host's worker or to a leader, never to both. A leader
 * that meets a submission it cannot do (another executor's descriptor, an
 * opcode, a buffer or descriptor it does not know, an overlap it cannot judge)
 * finishes everything before it and gives the ring back at that index. So the
 * host keeps its own order, decides every doubtful case with the same code as
 * ever, and changes the tables below only while the ring is its own.
 *
 * Host and leaders speak through struct air_res_host, in host memory. Words
 * have one writer each and carry the number of the attachment they are about
 * in the top 8 bits, as ring words carry laps, so that nothing has to be reset
 * and nothing is read twice.
 *
 * Fields are in the order in which both sides read them: see the names of
 * their writers.
 */
#ifndef AIR_RESIDENT_H
#define AIR_RESIDENT_H

#include "ops/cuda/abi.h"

#define AIR_RES_LEADERS 8   /* rings that can be attached at once */
#define AIR_RES_WORKERS 256 /* threads that run operators */
#define AIR_RES_THREADS (AIR_RES_WORKERS + 64)
/* Operators' scratch in shared memory: what conv2d and matmul tiles want. */
#define AIR_RES_SHARED	   20480
#define AIR_RES_MAX_BLOCKS 1024
/* Vectors of an operator that small.cuh does: four a thread. */
#define AIR_RES_VECTORS (4 * AIR_RES_WORKERS)
/* Of a column that gemv.cuh does: two a thread. */
#define AIR_RES_GEMV_VECTORS 2
/* Columns that a block of it has room for. */
#define AIR_RES_GEMV_COLUMNS (AIR_RES_SHARED / 4 / (AIR_RES_WORKERS / 32))

/**
 * struct air_res_extent - struct air_extent as a leader checks it
 * @above: AIR_RES_ABSENT: the operand is left out
 */
struct air_res_extent {
	uint64_t below;
	uint64_t above;
	uint64_t align_mask;
	uint64_t in_place; /* may be exactly the output's elements */
};

#define AIR_RES_ABSENT (~0ull)

/**
 * struct air_res_plan - a descriptor, in device memory
 * @op, @variant: which body
 * @tiles: blocks worth sharing it among; 1: not
 * @vectors: not 0: the operator has a body in small.cuh and beside it, which
 *	this number is for, and that will do if its operands are aligned to 16
 *	bytes. Elementwise operators: independent vectors, at most
 *	AIR_RES_VECTORS. rms_norm: vectors a thread. softmax: threads a row.
 *	rope: vectors of half a row
 * @gemv: not 0: the operator is a row times a matrix as gemv.cuh does it, if
 *its operands are aligned to 16 bytes: vectors of a column that a thread has
 * @extent: of the operands
 * @params: the body's
 *
 * Never changed once a table points to it; freed after it left the table and
 * the ring has been back at the host since.
 */
struct air_res_plan {
	uint32_t op;
	uint32_t variant;
	uint32_t tiles;
	uint32_t vectors;
	uint32_t gemv;
	uint32_t resv;
	struct air_res_extent extent[AIRUNNER_MAX_TENSORS];
	unsigned char params[AIR_PARAMS_MAX];
};

/**
 * struct air_res_buffer - a buffer, in device memory
 * @size: bytes; 0: no such buffer
 */
struct air_res_buffer {
	uint64_t addr;
	uint64_t size;
};

/* In struct air_res_buffer.size: host memory, whose readers owe an acquire. */
#define AIR_RES_HOST_MEMORY (1ull << 63)

/**
 * struct air_res_channel - what a leader knows of a ring, in device memory
 * @sq, @cq: the rings, as the GPU addresses them
 * @order: log2 of their entries
 * @plans: device address of @n_plans device addresses, by descriptor id; 0:
 *	not ours
 * @buffers: device address of @n_buffers struct air_res_buffer, by handle
 */
struct air_res_channel {
	uint64_t sq, cq;
	uint64_t plans, buffers;
	uint32_t n_plans, n_buffers;
	uint32_t order;
	uint32_t resv;
};

/* Why a ring comes back. */
enum air_res_reason {
	AIR_RES_FOREIGN = 1,  /* the next submission is for the host */
	AIR_RES_IDLE = 2,     /* nothing came for a while */
	AIR_RES_RECALLED = 3, /* the host asked, or the kernel stops */
};

/**
 * struct air_res_mailbox - what a leader says, in host memory the GPU addresses
 * @reason: written last: enum air_res_reason
 * @stopped: the next index, 56 bits
 * @completed: submissions it answered
 * @busy_ns: time operators took
 *
 * Each word is tagged with the attachment's number (airunner_word()).
 */
struct air_res_mailbox {
	uint64_t reason;
	uint64_t stopped;
	uint64_t completed;
	uint64_t busy_ns;
	uint64_t resv[12];
};

/**
 * struct air_res_host - host memory that host and kernel share
 * @stop: written by the host: non-zero: give back all rings and end
 * @recall: written by the host, by leader: come back
 * @attach: written by the host, by leader: the channel's place in the table
 * @index: written by the host before @attach: the ring index to begin at
 * @mailbox: written by the leaders
 *
 * What the host writes is together, so that one leader can look at it for all.
 * Words but @stop are tagged with the attachment's number.
 */
struct air_res_host {
	uint64_t stop;
	uint64_t recall[AIR_RES_LEADERS];
	uint64_t resv0[15 - AIR_RES_LEADERS];
	uint64_t attach[AIR_RES_LEADERS];
	uint64_t index[AIR_RES_LEADERS];
	struct air_res_mailbox mailbox[AIR_RES_LEADERS];
};

/*
 * A job's words: 48 bits of payload each, and above them the number of the job,
 * so that who reads them all at once knows whether they belong together.
 */
enum air_res_job_word {
	/*
	 * enum air_res_job_kind, blocks << 8, the rest of the job's number <<
	 * 24, AIR_RES_JOB_AHEAD
	 */
	AIR_RES_JOB_KIND,
	AIR_RES_JOB_PLAN,			  /* AIR_RES_SHARE */
	AIR_RES_JOB_CHANNEL = AIR_RES_JOB_PLAN,	  /* AIR_RES_RUN */
	AIR_RES_JOB_OPERANDS,			  /* AIR_RES_SHARE */
	AIR_RES_JOB_FIRST = AIR_RES_JOB_OPERANDS, /* AIR_RES_RUN: two words */
	AIR_RES_JOB_WORDS = AIR_RES_JOB_OPERANDS + AIRUNNER_MAX_TENSORS + 1
};

#define AIR_RES_JOB_BITS 48
/*
 * In AIR_RES_JOB_KIND, with AIR_RES_SHARE: the operators before it have not all
 * ended. Only what none of them writes may be read before
 * struct air_res_job.go says so.
 */
#define AIR_RES_JOB_AHEAD (1ull << 40)

/**
 * struct air_res_job - work that a leader shares with the helpers, in device
 *	memory
 * @word: of the last job
 * @go: number of the last job of those posted ahead that may go on
 * @done: counts helpers that have finished, of all jobs
 * @waiting: leaders that want the lock
 * @lock: the leader that has the helpers
 * @seq: number of the last job; of who has the lock
 * @end: AIR_RES_RUN: lowest index that is not part of the run; everybody
 *	lowers it
 *
 * A job has shares 0 to blocks - 1. The leader does share 0.
 */
struct air_res_job {
	uint64_t word[AIR_RES_JOB_WORDS];
	uint64_t resv0[16 - AIR_RES_JOB_WORDS];
	uint64_t go;
	uint64_t resv2[15];
	uint32_t done;
	uint32_t waiting;
	uint64_t resv1[15];
	uint32_t lock;
	uint32_t seq;
	unsigned long long end;
};

/**
 * struct air_res_state - of the kernel as a whole, in device memory
 * @attached: leaders that have a ring, or are about to
 * @quit: enum air_res_quit
 * @helpers: helpers that have begun: not all blocks may have found room
 * @attach: the host's words, as a leader that has a ring last saw them: what
 *	others read over the bus delays its answers
 */
struct air_res_state {
	uint32_t attached;
	uint32_t quit;
	uint32_t helpers;
	uint32_t resv[13];
	uint64_t attach[AIR_RES_LEADERS];
};

/*
 * The kernel ends when leader 0 finds no ring attached. It says so, looks
 * again, and then means it; a leader that takes a ring says so and looks, too,
 * and takes it only if nobody is about to end the kernel.
 */
enum air_res_quit {
	AIR_RES_STAY = 0,
	AIR_RES_MAYBE = 1,
	AIR_RES_GO = 2,
};

enum air_res_job_kind {
	AIR_RES_SHARE = 1,
	AIR_RES_RUN = 2,
	AIR_RES_QUIT = 3, /* never posted */
};

/**
 * struct air_res_params - what the kernel is launched with
 * @host: struct air_res_host, as the GPU addresses it
 * @channels: struct air_res_channel by place, in device memory
 * @job: struct air_res_job, zeroed before the launch
 * @next: where each block stopped in a run
 * @state: struct air_res_state, zeroed before the launch
 * @clock: nanoseconds to add to the GPU's clock to get CLOCK_MONOTONIC
 * @idle_ns: a ring without submissions for so long is given back
 * @park_ns: a kernel without rings for so long ends
 * @mhz: of the multiprocessors' clock, about
 * @leaders: how many blocks are leaders
 * @tag: number of the attachment that each leader waits for
 */
struct air_res_params {
	uint64_t host;
	uint64_t channels;
	uint64_t job;
	uint64_t next;
	uint64_t state;
	int64_t clock;
	uint64_t idle_ns;
	uint64_t park_ns;
	uint32_t leaders;
	uint32_t mhz;
	uint8_t tag[AIR_RES_LEADERS];
};

/* Attachments are numbered 1 to 255 and from 1 again: 0 is a fresh mailbox. */
AIRUNNER_FN uint32_t air_res_next_tag(uint32_t tag)
{
	return tag == 255 ? 1 : tag + 1;
}

#endif /* AIR_RESIDENT_H */
