# SPDX-License-Identifier: MIT
"""Tests of the bindings: python3 -m unittest (in this folder)."""

import array
import select
import unittest

import airunner
from airunner import AirError, DType, Executor, Status, Transport, ops

try:
    import numpy
except ImportError:
    numpy = None


class Plain:
    """An array.array with what NumPy would tell of it."""

    def __init__(self, values, typestr="<f4", code="f"):
        self.array = array.array(code, values)
        address, n = self.array.buffer_info()
        self.__array_interface__ = {"version": 3, "shape": (n,),
                                    "typestr": typestr,
                                    "data": (address, False)}


class Base(unittest.TestCase):
    def setUp(self):
        self.dev = airunner.Device("inproc:", threads=1, executors="cpu")
        self.ch = self.dev.channel()

    def tearDown(self):
        self.ch.close()
        self.dev.close()

    def refused(self, status, function, *args, **kwargs):
        with self.assertRaises(AirError) as caught:
            function(*args, **kwargs)
        self.assertEqual(caught.exception.status, status)
        return str(caught.exception)


class TestDevice(Base):
    def test_what_it_is(self):
        self.assertEqual(self.dev.transport, Transport.INPROC)
        caps = self.dev.caps(Executor.CPU)
        self.assertTrue(caps.present)
        self.assertIn(b"cpu", caps.name)
        self.assertFalse(self.dev.caps(Executor.CUDA_RESIDENT).present)
        self.assertRegex(airunner.__version__, r"^\d+\.\d+\.\d+$")

    def test_refused(self):
        self.assertIn("nonsense", self.refused(Status.BAD_ARGUMENT,
                                               airunner.Device, "nonsense"))
        self.refused(Status.BAD_ARGUMENT, self.dev.channel, order=17)
        self.refused(Status.BUSY, self.dev.close)

    def test_quiet(self):
        x, y = Plain([1, -2]), Plain([0, 0])
        with self.dev.quiet(), self.dev.quiet():
            self.ch.wait(ops.relu(self.ch.tensor(y), self.ch.tensor(x),
                                  wait=False))
        self.assertEqual(list(y.array), [1, 0])
        with airunner.Device("inproc:", executors="cpu", park_ns=5000,
                             large_bytes=1 << 20, large_alone=True) as dev:
            self.assertEqual(dev.caps(Executor.CPU).park_ns, 0)

    def test_closed_by_with(self):
        with airunner.Device("inproc:", executors="cpu") as dev:
            with dev.channel(order=2) as ch:
                ch.empty((3,), DType.f32)
            self.assertIsNone(ch.handle)
        self.assertIsNone(dev.handle)


class TestTensors(Base):
    def test_shapes(self):
        t = self.ch.empty((2, 3, 4), "f32")
        self.assertEqual(t.shape, (2, 3, 4))
        self.assertEqual(t.strides, (12, 4, 1))
        p = t.permute(2, 0, 1)
        self.assertEqual(p.shape, (4, 2, 3))
        self.assertEqual(p.strides, (1, 12, 4))
        self.assertRaises(ValueError, t.permute, 0, 0, 1)
        self.assertRaises(KeyError, self.ch.empty, (1,), "f80")
        self.refused(Status.BAD_SHAPE, self.ch.empty, (-1,), DType.f32)
        self.refused(Status.BAD_SHAPE, self.ch.empty, (1,) * 9, DType.f32)

    def test_foreign_refused(self):
        class ReadOnly:
            __array_interface__ = {"shape": (1,), "typestr": "<f4",
                                   "data": (4096, True)}

        class Complex:
            __array_interface__ = {"shape": (1,), "typestr": "<c8",
                                   "data": (4096, False)}

        self.assertRaises(TypeError, self.ch.tensor, ReadOnly())
        self.assertRaises(TypeError, self.ch.tensor, Complex())

    def test_torch_like(self):
        plain = Plain([1.0, -2.0, 3.0, -4.0])

        class Torch:
            dtype = "torch.float32"
            shape = (2, 2)
            is_cuda = False

            def stride(self):
                return (1, 2)

            def data_ptr(self):
                return plain.array.buffer_info()[0]

        x = self.ch.tensor(Torch())
        self.assertEqual(x.dtype, DType.f32)
        self.assertEqual(x.strides, (1, 2))
        ops.relu(x, x)
        self.assertEqual(list(plain.array), [1, 0, 3, 0])


class TestOperators(Base):
    def test_by_pointer(self):
        x, y = Plain([-1.0, 2.0, -3.0]), Plain([9.0, 9.0, 9.0])
        done = ops.relu(self.ch.tensor(y), self.ch.tensor(x))
        self.assertEqual(done.status, Status.OK)
        self.assertEqual(list(y.array), [0, 2, 0])

    def test_descriptors_are_kept(self):
        x = self.ch.tensor(Plain([1.0] * 8))
        y = self.ch.empty((8,), DType.f32)
        for alpha in (2.0, 3.0, 2.0):
            ops.scale(y, x, alpha)
        self.assertEqual(len(self.ch.descriptors), 2)

    def test_tokens(self):
        y = Plain([1.0] * 4)
        t = self.ch.tensor(y)
        tokens = [ops.vector_add(t, t, t, wait=False) for _ in range(5)]
        for token in tokens:
            self.assertEqual(self.ch.wait(token, timeout=60).token, token)
        self.assertEqual(list(y.array), [32.0] * 4)
        self.refused(Status.BAD_TOKEN, self.ch.poll, tokens[0])
        token = ops.relu(t, t, wait=False)
        self.assertIn("CUDA", self.refused(
            Status.UNSUPPORTED, self.ch.stream_wait, token, 0x1234))
        self.ch.drain()
        self.assertEqual(self.ch.next().token, token)
        self.assertIsNone(self.ch.next())

    def test_select(self):
        t = self.ch.tensor(Plain([1.0] * 4))
        fd = self.ch.fileno()
        for _ in range(20):
            token = ops.relu(t, t, wait=False)
            while (done := self.ch.next()) is None:
                if self.ch.arm():
                    self.assertTrue(select.select([fd], [], [], 30)[0])
            self.assertEqual(done.token, token)

    def test_refused(self):
        x = self.ch.empty((4,), DType.f32)
        y = self.ch.empty((5,), DType.f32)
        self.assertIn("relu", self.refused(Status.BAD_SHAPE, ops.relu, y, x))
        self.assertRaises(TypeError, ops.relu, x)
        self.assertRaises(TypeError, ops.relu, x, None)
        self.assertRaises(TypeError, ops.relu, x, [1, 2])
        outside = x.view((4,), offset=2000)
        self.assertIn("x (operand 2)", self.refused(
            Status.BAD_RANGE, ops.relu, x, outside))
        self.assertRaises(ValueError, ops.matmul, x, x, x, alpha=float("nan"))


class TestSingleCaller(TestOperators):
    """The same in a channel that nobody else uses."""

    def setUp(self):
        self.dev = airunner.Device("inproc:", threads=1, executors="cpu")
        self.ch = self.dev.channel(single_caller=True)


@unittest.skipIf(numpy is None, "needs NumPy")
class TestNumpy(Base):
    def setUp(self):
        super().setUp()
        self.rng = numpy.random.default_rng()

    def random(self, *shape):
        return self.rng.standard_normal(shape, dtype="float32")

    def close(self, got, want, tolerance=1e-5):
        numpy.testing.assert_allclose(got, want, rtol=tolerance,
                                      atol=tolerance)

    def both(self, *shape):
        a = self.random(*shape)
        return a, self.ch.tensor(a)

    def test_shared_both_ways(self):
        a, t = self.both(3, 4)
        self.assertEqual(t.numpy().ctypes.data, a.ctypes.data)
        t.numpy()[1, 2] = 5
        self.assertEqual(a[1, 2], 5)
        y = self.ch.empty((2, 3), DType.i64)
        y.numpy()[:] = 7
        self.assertEqual(y.numpy().sum(), 42)

    def test_strided_and_reversed(self):
        a = self.random(6, 8)
        x = self.ch.tensor(a[::-2, 1::3])
        y = self.ch.empty(x.shape, DType.f32)
        ops.copy(y, x)
        numpy.testing.assert_array_equal(y.numpy(), a[::-2, 1::3])

    def test_bf16_bits(self):
        a, x = self.both(10)
        y = self.ch.empty((10,), DType.bf16)
        ops.copy(y, x)
        self.assertRaises(TypeError, y.numpy)
        back = (y.bits().astype("uint32") << 16).view("float32")
        self.close(back, a, 1e-2)

    def test_elementwise(self):
        a, ta = self.both(5, 7)
        b, tb = self.both(5, 7)
        y = self.ch.empty((5, 7), DType.f32)
        for run, want in (
                (lambda: ops.add(y, ta, tb), a + b),
                (lambda: ops.mul(y, ta, tb), a * b),
                (lambda: ops.silu(y, ta), a / (1 + numpy.exp(-a))),
                (lambda: ops.scale(y, ta, -2.5), a * -2.5),
                (lambda: ops.gelu(y, ta, tanh=True),
                 a / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) *
                                         (a + 0.044715 * a ** 3))))):
            run()
            self.close(y.numpy(), want)

    def test_rows(self):
        a, x = self.both(4, 33)
        w, weight = self.both(33)
        y = self.ch.empty((4, 33), DType.f32)
        e = numpy.exp(a - a.max(-1, keepdims=True))
        ops.softmax(y, x)
        self.close(y.numpy(), e / e.sum(-1, keepdims=True))
        ops.rms_norm(y, x, weight, epsilon=1e-6)
        rms = numpy.sqrt((a * a).mean(-1, keepdims=True) + 1e-6)
        self.close(y.numpy(), a / rms * w)
        ops.layer_norm(y, x, epsilon=1e-5)
        centred = a - a.mean(-1, keepdims=True)
        self.close(y.numpy(), centred / numpy.sqrt(
            a.var(-1, keepdims=True) + 1e-5))

    def test_reductions(self):
        a, x = self.both(3, 4, 5)
        for axes, keepdim in ((1, False), ((0, 2), True), (None, False)):
            np_axes = axes
            want = a.sum(np_axes, keepdims=keepdim)
            y = self.ch.empty(want.shape, DType.f32)
            ops.reduce_sum(y, x, axes, keepdim)
            self.close(y.numpy(), want)
            ops.reduce_max(y, x, axes, keepdim)
            self.close(y.numpy(), a.max(np_axes, keepdims=keepdim))

    def test_matmul(self):
        a, ta = self.both(2, 5, 6)
        b, tb = self.both(2, 7, 6)
        bias, tbias = self.both(7)
        y = self.ch.empty((2, 5, 7), DType.f32)
        for _ in range(2):
            ops.matmul(y, ta, tb, bias=tbias, trans_b=True, alpha=0.5)
            self.close(y.numpy(), a @ b.transpose(0, 2, 1) * 0.5 + bias)

    def test_conv2d(self):
        a, x = self.both(1, 2, 5, 5)
        w, weight = self.both(3, 2, 3, 3)
        y = self.ch.empty((1, 3, 5, 5), DType.f32)
        ops.conv2d(y, x, weight, padding=(1, 1))
        padded = numpy.pad(a[0], ((0, 0), (1, 1), (1, 1)))
        want = numpy.zeros((3, 5, 5))
        for i in range(3):
            for j in range(3):
                want += numpy.einsum("oc,chw->ohw", w[:, :, i, j],
                                     padded[:, i:i + 5, j:j + 5])
        self.close(y.numpy()[0], want, 1e-4)

    def test_embedding(self):
        table, t = self.both(10, 4)
        rows = numpy.array([3, 0, 9], dtype="int64")
        y = self.ch.empty((3, 4), DType.f32)
        ops.embedding(y, t, self.ch.tensor(rows))
        numpy.testing.assert_array_equal(y.numpy(), table[rows])

    def test_rope(self):
        a, x = self.both(1, 3, 2, 8)
        angle = self.random(3, 4)
        cos = self.ch.tensor(numpy.cos(angle))
        sin = self.ch.tensor(numpy.sin(angle))
        y = self.ch.empty(a.shape, DType.f32)
        ops.rope(y, x, cos, sin)
        c, s = numpy.cos(angle)[None, :, None], numpy.sin(angle)[None, :, None]
        lo, hi = a[..., :4], a[..., 4:]
        self.close(y.numpy(), numpy.concatenate(
            [lo * c - hi * s, hi * c + lo * s], -1))


if __name__ == "__main__":
    unittest.main()
