/* SPDX-License-Identifier: MIT */
/* A circular doubly linked list; an entry not in one points to itself. */
#ifndef AIR_LIST_H
#define AIR_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct air_list {
	struct air_list *next;
	struct air_list *prev;
};

static inline void air_list_init(struct air_list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool air_list_empty(const struct air_list *l)
{
	return l->next == l;
}

static inline void air_list_append(struct air_list *head, struct air_list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static inline void air_list_remove(struct air_list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	air_list_init(l);
}

#define air_list_entry(ptr, type, member)                                      \
	((type *)((char *)(ptr)-offsetof(type, member)))

/* @pos may be removed from the list in the body. */
#define air_list_each(pos, n, head)                                            \
	for (pos = (head)->next, n = pos->next; pos != (head);                 \
	     pos = n, n = pos->next)

#endif /* AIR_LIST_H */
