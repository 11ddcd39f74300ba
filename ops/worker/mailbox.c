// SPDX-License-Identifier: MIT
/*
 * What other threads tell the worker, and how it sleeps. Both lists are
 * stacks that others push on and the worker takes whole, so that nobody takes
 * a lock and nobody can be in the way of a producer that was preempted.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops/worker/internal.h"

static struct air_mail closed;

void air_futex_wait(uint32_t *word, uint32_t value, int64_t timeout_ns,
		    bool shared)
{
	struct timespec ts = {
		.tv_sec = timeout_ns / 1000000000,
		.tv_nsec = timeout_ns % 1000000000,
	};

	syscall(SYS_futex, word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE,
		value, timeout_ns < 0 ? NULL : &ts, NULL, 0);
}

void air_futex_wake(uint32_t *word, bool shared)
{
	syscall(SYS_futex, word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE,
		0x7fffffff, NULL, NULL, 0);
}

air_status air_mailbox_init(struct air_mailbox *box)
{
	box->mail = &closed;
	box->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return box->fd < 0 ? AIR_SYSTEM : AIR_OK;
}

void air_mailbox_fini(struct air_mailbox *box)
{
	if (box->fd >= 0)
		close(box->fd);
}

void air_mailbox_open(struct air_mailbox *box)
{
	air_store(&box->mail, NULL, RELEASE);
}

static void finish(struct air_mail *mail, air_status status)
{
	mail->status = status;
	/* The caller may be gone as soon as it sees this. */
	air_store(&mail->done, 1, RELEASE);
	air_futex_wake(&mail->done, false);
}

void air_mailbox_close(struct air_mailbox *box)
{
	struct air_mail *mail =
		__atomic_exchange_n(&box->mail, &closed, __ATOMIC_ACQ_REL);

	while (mail && mail != &closed) {
		struct air_mail *next = mail->next;

		finish(mail, AIR_BUSY);
		mail = next;
	}
}

/* Async-signal-safe. */
void air_mailbox_wake(struct air_mailbox *box)
{
	uint64_t one = 1;
	ssize_t n;

	/* The push before this, and this: both sequentially consistent. */
	switch (__atomic_exchange_n(&box->sleep, AIR_AWAKE,
				    __ATOMIC_SEQ_CST)) {
	case AIR_IN_FUTEX:
		air_futex_wake(&box->sleep, false);
		break;
	case AIR_IN_POLL:
		/* EAGAIN: the counter is full, so the worker will wake. */
		n = write(box->fd, &one, sizeof(one));
		(void)n;
		break;
	}
}

air_status air_mailbox_call(struct air_mailbox *box, struct air_mail *mail)
{
	struct air_mail *first = air_load(&box->mail, ACQUIRE);

	mail->done = 0;
	do {
		if (first == &closed)
			return AIR_BUSY;
		mail->next = first;
	} while (!__atomic_compare_exchange_n(&box->mail, &first, mail, true,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_ACQUIRE));
	air_mailbox_wake(box);
	while (!air_load(&mail->done, ACQUIRE))
		air_futex_wait(&mail->done, 0, -1, false);
	return mail->status;
}

void air_mailbox_ring(struct air_mailbox *box, struct air_wchannel *ch)
{
	struct air_wchannel *first;

	if (!__atomic_exchange_n(&ch->rung, 1, __ATOMIC_SEQ_CST)) {
		first = air_load(&box->rung, RELAXED);
		do {
			ch->next_rung = first;
		} while (!__atomic_compare_exchange_n(
			&box->rung, &first, ch, true, __ATOMIC_SEQ_CST,
			__ATOMIC_RELAXED));
	}
	air_mailbox_wake(box);
}

bool air_mailbox_empty(const struct air_mailbox *box)
{
	return !air_load(&box->rung, SEQ_CST) && !air_load(&box->mail, SEQ_CST);
}

bool air_mailbox_take_rung(struct air_worker *w)
{
	struct air_mailbox *box = &w->box;
	struct air_wchannel *ch;

	if (!air_load(&box->rung, RELAXED))
		return false;
	ch = __atomic_exchange_n(&box->rung, NULL, __ATOMIC_ACQUIRE);
	while (ch) {
		struct air_wchannel *next = ch->next_rung;

		/*
		 * A bell from here on is a new one. An exchange, because who
		 * found the channel rung already relies on the look at the
		 * ring that follows.
		 */
		__atomic_exchange_n(&ch->rung, 0, __ATOMIC_SEQ_CST);
		air_wchannel_activate(ch);
		/* It may be that a stream waits for what has completed. */
		if (air_unlikely(ch->handover != NULL))
			air_touch(ch);
		ch = next;
	}
	return true;
}

static bool take_mail(struct air_mailbox *box)
{
	struct air_mail *mail, *fifo = NULL;

	if (!air_load(&box->mail, RELAXED))
		return false;
	mail = __atomic_exchange_n(&box->mail, NULL, __ATOMIC_ACQUIRE);
	while (mail) {
		struct air_mail *next = mail->next;

		mail->next = fifo;
		fifo = mail;
		mail = next;
	}
	while (fifo) {
		struct air_mail *next = fifo->next;

		finish(fifo, fifo->fn(fifo->arg));
		fifo = next;
	}
	return true;
}

bool air_mailbox_take(struct air_worker *w)
{
	bool rung = air_mailbox_take_rung(w);

	return take_mail(&w->box) || rung;
}
