// SPDX-License-Identifier: MIT
#include "tests/unit/fake_worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "libairunner/clock.h"

static struct fake *fake;

static air_status fake_open(struct air_device *dev, const char *where,
			    const struct air_device_options *options)
{
	dev->priv = fake;
	return AIR_OK;
}

static void fake_close(struct air_device *dev)
{
}

static air_status fake_caps(struct air_device *dev, air_executor executor,
			    struct air_backend_caps *caps)
{
	caps->present = executor == AIR_EXEC_CPU;
	return AIR_OK;
}

static air_status fake_build(struct air_channel *ch,
			     const struct air_channel_options *options)
{
	struct fake *f = ch->dev->priv;

	f->ch = ch;
	ch->ring.ctrl->sq_epoch = 1;
	return AIR_OK;
}

static void fake_destroy(struct air_channel *ch)
{
}

static air_status fake_register(struct air_channel *ch, struct air_buffer *buf)
{
	struct fake *f = ch->dev->priv;

	if (f->refuse_buffers == AIR_OK)
		f->registered++;
	return f->refuse_buffers;
}

static void fake_unregister(struct air_channel *ch, struct air_buffer *buf)
{
	struct fake *f = ch->dev->priv;

	f->registered--;
	f->unregistered++;
}

static bool fake_released(struct air_channel *ch, struct air_buffer *buf)
{
	struct fake *f = ch->dev->priv;

	return !f->held;
}

static air_status gone(struct air_channel *ch)
{
	struct fake *f = ch->dev->priv;

	if (!f->dead)
		return AIR_OK;
	pthread_mutex_lock(&ch->answer_lock);
	air_channel_cut(ch, AIR_WORKER_DIED);
	pthread_mutex_unlock(&ch->answer_lock);
	return AIR_WORKER_DIED;
}

static air_status fake_doorbell(struct air_channel *ch, bool watch)
{
	struct fake *f = ch->dev->priv;

	if (watch)
		f->watches++;
	else
		f->bells++;
	return gone(ch);
}

static uint64_t fake_sleep_begin(struct air_channel *ch)
{
	return 0;
}

static air_status fake_sleep(struct air_channel *ch, uint64_t seq,
			     uint64_t deadline)
{
	struct fake *f = ch->dev->priv;

	f->sleeps++;
	if (f->on_sleep)
		f->on_sleep(f);
	else
		while (!f->dead && air_remaining(deadline))
			air_relax();
	return gone(ch);
}

static bool fake_served(struct air_channel *ch)
{
	struct fake *f = ch->dev->priv;

	return !f->unserved;
}

static air_status fake_notify_fd(struct air_channel *ch, int *fd)
{
	return AIR_UNSUPPORTED;
}

static void fake_notify_clear(struct air_channel *ch)
{
}

static air_status fake_revive(struct air_device *dev)
{
	struct fake *f = dev->priv;
	struct air_channel *ch = f->ch;
	air_status status;

	if (!f->can_revive)
		return AIR_NO_WORKER;
	f->dead = false;
	f->revived++;
	pthread_mutex_lock(&ch->answer_lock);
	air_channel_handed_over(ch);
	ch->ring.ctrl->sq_epoch++;
	f->next = air_channel_tail(ch);
	pthread_mutex_unlock(&ch->answer_lock);
	f->registered = 0;
	pthread_mutex_lock(&ch->lock);
	status = air_buffer_register_all(ch);
	pthread_mutex_unlock(&ch->lock);
	air_channel_mend(ch);
	return status;
}

static const struct air_transport_ops fake_ops = {
	.kind = AIR_UNIX,
	.mapping = AIR_MAPPING_ANONYMOUS,
	.imports = true,
	.open = fake_open,
	.close = fake_close,
	.caps = fake_caps,
	.channel_build = fake_build,
	.channel_destroy = fake_destroy,
	.buffer_register = fake_register,
	.buffer_unregister = fake_unregister,
	.buffer_released = fake_released,
	.doorbell = fake_doorbell,
	.sleep_begin = fake_sleep_begin,
	.sleep = fake_sleep,
	.check = gone,
	.served = fake_served,
	.notify_fd = fake_notify_fd,
	.notify_clear = fake_notify_clear,
	.revive = fake_revive,
};

void fake_start(struct fake *f, uint32_t order)
{
	fake_start_with(f, order, 0);
}

void fake_start_with(struct fake *f, uint32_t order, uint32_t flags)
{
	struct air_device_options device = { .size = sizeof(device),
					     .spin_ns = 1 };
	struct air_channel_options options = { .size = sizeof(options),
					       .order = order,
					       .flags = flags };
	air_channel *ch;

	memset(f, 0, sizeof(*f));
	fake = f;
	assert_true(air_fork_watch());
	assert_int_equal(air_device_open(&fake_ops, "", &device, &f->dev),
			 AIR_OK);
	assert_int_equal(air_channel_create(f->dev, &options, &ch), AIR_OK);
	assert_ptr_equal(ch, f->ch);
}

void fake_stop(struct fake *f)
{
	f->held = false;
	f->on_sleep = fake_serve_one;
	fake_serve_all(f);
	assert_int_equal(air_channel_destroy(f->ch), AIR_OK);
	assert_int_equal(air_close(f->dev), AIR_OK);
}

bool fake_serve_detail(struct fake *f, air_status status, uint16_t detail)
{
	struct air_cqe cqe = {
		.status = (enum airunner_status)status,
		.detail = detail,
		.start = 1000,
		.duration = 10,
	};

	if (!air_ring_fetch(&f->ch->ring, f->next, &f->last))
		return false;
	if (airunner_sqe_opcode(f->last.word[0]) == AIRUNNER_OP_CANCELED)
		cqe.status = AIRUNNER_S_CANCELED;
	if (!air_ring_answered(&f->ch->ring, f->next))
		air_ring_complete(&f->ch->ring, f->next, &cqe);
	f->next++;
	return true;
}

bool fake_serve(struct fake *f, air_status status)
{
	return fake_serve_detail(f, status, 0);
}

unsigned int fake_serve_all(struct fake *f)
{
	unsigned int n = 0;

	while (fake_serve(f, AIR_OK))
		n++;
	return n;
}

void fake_serve_one(struct fake *f)
{
	fake_serve(f, AIR_OK);
}

void fake_answer(struct fake *f, uint64_t index, air_status status)
{
	struct air_cqe cqe = { .status = (enum airunner_status)status };

	air_ring_complete(&f->ch->ring, index, &cqe);
}

void fake_jump(struct fake *f, uint64_t index)
{
	struct air_ring *r = &f->ch->ring;
	uint64_t entries = UINT64_C(1) << r->order;

	for (uint64_t i = index - entries; i != index; i++) {
		uint64_t slot = air_ring_slot(r, i);
		uint8_t lap = airunner_lap(i, r->order);

		for (int w = 0; w < AIRUNNER_SQE_WORDS; w++)
			r->sq[slot * AIRUNNER_SQE_WORDS + w] =
				airunner_word(0, lap);
		for (int w = 0; w < AIRUNNER_CQE_WORDS; w++)
			r->cq[slot * AIRUNNER_CQE_WORDS + w] =
				airunner_word(0, lap);
		f->ch->collected[slot] = lap;
		f->ch->slots[slot].claimed = i + 1;
	}
	r->ctrl->sq_tail = index;
	r->ctrl->cq_head = index;
	f->next = index;
}

air_token fake_nop(struct fake *f, uint32_t flags)
{
	struct air_call call;
	air_token token;

	air_prepare_nop(&call);
	call.flags = flags;
	assert_int_equal(air_submit(f->ch, &call, 1, &token), AIR_OK);
	return token;
}
