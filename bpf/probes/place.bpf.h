/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the probes remember of a thread. Each thread has a place in an array, by its number, from when it begins something until that
 * ends. If another thread has the place meanwhile, an entry of a hash table is used, for which a lookup costs ten times as much; it
 * stays as long as there is room.
 */
#ifndef MOSTRACE_PLACE_BPF_H
#define MOSTRACE_PLACE_BPF_H

#include "causes.bpf.h"

/* A power of 2. */
#define PLACES (1 << 11)

#ifdef MOSTRACE_LOOPLESS
/* Before 5.12 no instruction takes a place if it is free. */
#define ARRAY_OF_PLACES(what)										\
	static __always_inline struct what *own_##what(__u64 thread) { return 0; }			\
	static __always_inline struct what *take_##what(__u64 thread) { return 0; }			\
	static __always_inline void free_##what(__u64 thread) {}					\
	static const bool is_beside_##what = true;
#else
#define ARRAY_OF_PLACES(what)										\
	struct what##_place {										\
		struct what of;										\
		__u64 thread;		/* 0: it is free */						\
	};												\
													\
	struct {											\
		__uint(type, BPF_MAP_TYPE_ARRAY);							\
		__uint(max_entries, PLACES);								\
		__type(key, __u32);									\
		__type(value, struct what##_place);							\
	} what##_places SEC(".maps");									\
													\
	/* True once a thread has found its place taken. */						\
	static bool is_beside_##what;									\
													\
	static __always_inline struct what##_place *place_of_##what(__u64 thread)			\
	{												\
		__u32 index = thread & (PLACES - 1);							\
													\
		return bpf_map_lookup_elem(&what##_places, &index);					\
	}												\
													\
	static __always_inline struct what *own_##what(__u64 thread)					\
	{												\
		struct what##_place *place = place_of_##what(thread);					\
													\
		return place && place->thread == thread ? &place->of : 0;				\
	}												\
													\
	static __always_inline struct what *take_##what(__u64 thread)					\
	{												\
		struct what##_place *place = place_of_##what(thread);					\
													\
		if (place && (place->thread == thread ||						\
			      (!place->thread && !__sync_val_compare_and_swap(&place->thread, 0, thread))))	\
			return &place->of;								\
		is_beside_##what = true;								\
		return 0;										\
	}												\
													\
	/* What was written to the place is there before the place is free. */				\
	static __always_inline void free_##what(__u64 thread)						\
	{												\
		struct what##_place *place = place_of_##what(thread);					\
													\
		if (place && place->thread == thread)							\
			__sync_fetch_and_and(&place->thread, 0);					\
	}
#endif

/*
 * Defines find_WHAT, which returns what the current thread has, or NULL; room_for_WHAT, which makes room for it; and
 * leave_WHAT, which gives up the thread's place.
 */
#define PER_THREAD(what)										\
	struct {											\
		__uint(type, BPF_MAP_TYPE_LRU_HASH);							\
		__uint(max_entries, 1 << 14);								\
		__type(key, __u32);									\
		__type(value, struct what);								\
	} what##s SEC(".maps");										\
													\
	ARRAY_OF_PLACES(what)										\
													\
	static __always_inline struct what *find_##what(void)						\
	{												\
		__u32 thread = current_pid();								\
		struct what *own = own_##what(thread);							\
													\
		return own || !is_beside_##what ? own : bpf_map_lookup_elem(&what##s, &thread);		\
	}												\
													\
	/* This is a function of its own so that its stack is not part of a walk to a name. */		\
	static __noinline struct what *room_for_##what(void)						\
	{												\
		static const struct what none;								\
		__u32 thread = current_pid();								\
		struct what *room = take_##what(thread);						\
													\
		if (!room)										\
			room = bpf_map_lookup_elem(&what##s, &thread);					\
		if (room)										\
			return room;									\
		if (bpf_map_update_elem(&what##s, &thread, &none, BPF_ANY))				\
			lose_cause(LOSS_CAUSES_TASKS);							\
		return bpf_map_lookup_elem(&what##s, &thread);						\
	}												\
													\
	static __always_inline void leave_##what(void)							\
	{												\
		free_##what(current_pid());								\
	}

#endif
