/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM airunner

#if !defined(AIRUNNER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define AIRUNNER_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(air_channel_build,
	TP_PROTO(u32 channel, pid_t pid, u32 order, unsigned long pages,
		 u32 priority, u32 weight),
	TP_ARGS(channel, pid, order, pages, priority, weight),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(pid_t, pid)
		__field(u32, order)
		__field(unsigned long, pages)
		__field(u32, priority)
		__field(u32, weight)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->pid = pid;
		__entry->order = order;
		__entry->pages = pages;
		__entry->priority = priority;
		__entry->weight = weight;
	),
	TP_printk("channel=%u pid=%d order=%u pages=%lu priority=%u weight=%u",
		  __entry->channel, __entry->pid, __entry->order,
		  __entry->pages, __entry->priority, __entry->weight)
);

/* What happens between a channel and a worker. */
DECLARE_EVENT_CLASS(air_channel_worker,
	TP_PROTO(u32 channel, u32 worker),
	TP_ARGS(channel, worker),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u32, worker)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->worker = worker;
	),
	TP_printk("channel=%u worker=%u", __entry->channel, __entry->worker)
);

DEFINE_EVENT(air_channel_worker, air_channel_assign,
	TP_PROTO(u32 channel, u32 worker), TP_ARGS(channel, worker));
DEFINE_EVENT(air_channel_worker, air_channel_unassign,
	TP_PROTO(u32 channel, u32 worker), TP_ARGS(channel, worker));
DEFINE_EVENT(air_channel_worker, air_channel_announce,
	TP_PROTO(u32 channel, u32 worker), TP_ARGS(channel, worker));
DEFINE_EVENT(air_channel_worker, air_channel_turn,
	TP_PROTO(u32 channel, u32 worker), TP_ARGS(channel, worker));

/* What happens to a channel by itself. */
DECLARE_EVENT_CLASS(air_channel,
	TP_PROTO(u32 channel),
	TP_ARGS(channel),
	TP_STRUCT__entry(
		__field(u32, channel)
	),
	TP_fast_assign(
		__entry->channel = channel;
	),
	TP_printk("channel=%u", __entry->channel)
);

DEFINE_EVENT(air_channel, air_channel_doorbell,
	TP_PROTO(u32 channel), TP_ARGS(channel));
DEFINE_EVENT(air_channel, air_channel_owner_gone,
	TP_PROTO(u32 channel), TP_ARGS(channel));
DEFINE_EVENT(air_channel, air_channel_stop,
	TP_PROTO(u32 channel), TP_ARGS(channel));
DEFINE_EVENT(air_channel, air_channel_release,
	TP_PROTO(u32 channel), TP_ARGS(channel));

TRACE_EVENT(air_channel_report,
	TP_PROTO(u32 channel, u64 device_ns, u64 completed, u32 flags),
	TP_ARGS(channel, device_ns, completed, flags),
	TP_STRUCT__entry(
		__field(u64, device_ns)
		__field(u64, completed)
		__field(u32, channel)
		__field(u32, flags)
	),
	TP_fast_assign(
		__entry->device_ns = device_ns;
		__entry->completed = completed;
		__entry->channel = channel;
		__entry->flags = flags;
	),
	TP_printk("channel=%u device_ns=%llu completed=%llu flags=%s",
		  __entry->channel, __entry->device_ns, __entry->completed,
		  __print_flags(__entry->flags, "|",
				{ AIRUNNER_REPORT_IDLE, "IDLE" },
				{ AIRUNNER_REPORT_MORE, "MORE" }))
);

TRACE_EVENT(air_channel_completed,
	TP_PROTO(u32 channel, u64 seq),
	TP_ARGS(channel, seq),
	TP_STRUCT__entry(
		__field(u64, seq)
		__field(u32, channel)
	),
	TP_fast_assign(
		__entry->seq = seq;
		__entry->channel = channel;
	),
	TP_printk("channel=%u seq=%llu", __entry->channel, __entry->seq)
);

TRACE_EVENT(air_channel_answered,
	TP_PROTO(u32 channel, u32 status, int count),
	TP_ARGS(channel, status, count),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u32, status)
		__field(int, count)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->status = status;
		__entry->count = count;
	),
	TP_printk("channel=%u status=%u count=%d", __entry->channel,
		  __entry->status, __entry->count)
);

DECLARE_EVENT_CLASS(air_buffer,
	TP_PROTO(u32 channel, u32 handle, unsigned long pages),
	TP_ARGS(channel, handle, pages),
	TP_STRUCT__entry(
		__field(u32, channel)
		__field(u32, handle)
		__field(unsigned long, pages)
	),
	TP_fast_assign(
		__entry->channel = channel;
		__entry->handle = handle;
		__entry->pages = pages;
	),
	TP_printk("channel=%u handle=%u pages=%lu", __entry->channel,
		  __entry->handle, __entry->pages)
);

DEFINE_EVENT(air_buffer, air_buffer_register,
	TP_PROTO(u32 channel, u32 handle, unsigned long pages),
	TP_ARGS(channel, handle, pages));
DEFINE_EVENT(air_buffer, air_buffer_release,
	TP_PROTO(u32 channel, u32 handle, unsigned long pages),
	TP_ARGS(channel, handle, pages));

DECLARE_EVENT_CLASS(air_worker,
	TP_PROTO(u32 worker, pid_t pid, u64 caps),
	TP_ARGS(worker, pid, caps),
	TP_STRUCT__entry(
		__field(u64, caps)
		__field(u32, worker)
		__field(pid_t, pid)
	),
	TP_fast_assign(
		__entry->caps = caps;
		__entry->worker = worker;
		__entry->pid = pid;
	),
	TP_printk("worker=%u pid=%d caps=0x%llx", __entry->worker,
		  __entry->pid, __entry->caps)
);

DEFINE_EVENT(air_worker, air_worker_attach,
	TP_PROTO(u32 worker, pid_t pid, u64 caps), TP_ARGS(worker, pid, caps));
DEFINE_EVENT(air_worker, air_worker_death,
	TP_PROTO(u32 worker, pid_t pid, u64 caps), TP_ARGS(worker, pid, caps));

TRACE_EVENT(air_thread_class,
	TP_PROTO(pid_t tid, u32 thread_class),
	TP_ARGS(tid, thread_class),
	TP_STRUCT__entry(
		__field(pid_t, tid)
		__field(u32, thread_class)
	),
	TP_fast_assign(
		__entry->tid = tid;
		__entry->thread_class = thread_class;
	),
	TP_printk("tid=%d class=%u", __entry->tid, __entry->thread_class)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
