/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls, recorded at the functions of the kernel that carry them out, where it accepts programs there. A call of any
 * other number, and a write to any other type of filesystem, then costs what it costs without a recording. The
 * tracepoints sys_enter and sys_exit send every call of the machine through the kernel's slow path.
 *
 * Each call that is recorded has a function of its own number, except for those that write: these are recorded at the
 * filesystem's function, because programs often write to other places.
 */
#ifndef MOSTRACE_FUNCTION_BPF_H
#define MOSTRACE_FUNCTION_BPF_H

#include "call.bpf.h"

static __always_inline struct pt_regs *callers_registers(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs((void *)task);
}

/* Gives up a call that is still open when the next one begins: its end was not seen. */
static __always_inline void check_ended(void)
{
	struct call *call = current_call();

	if (!call)
		return;
	close_call(call);
	lose_cause(LOSS_CAUSES_TASKS);
}

static __always_inline int begin_function(void)
{
	struct task_struct *task = this_task();
	struct pt_regs *regs = callers_registers(task);

	check_ended();
	return begin_call(regs, call_number(regs));
}

static __always_inline int end_function(long result)
{
	struct task_struct *task = this_task();

	return end_call(callers_registers(task), result);
}

/* The current task, which may be in a call of its own that writes. */
struct writer {
	struct task_struct *task;
	struct pt_regs *regs;
	__u16 how;		/* user space's description of the call */
};

/* Returns true if the task is in such a call; splice and the like have their own functions. */
static __always_inline bool find_writer(struct writer *w)
{
	w->task = this_task();
	w->regs = callers_registers(w->task);
	w->how = kind_of_number(call_number(w->regs));
	return !(OF_TASK(w->task, flags) & PF_NO_CALL) && (w->how & CALL_KIND) == MOSTRACE_CALL_WRITE;
}

/*
 * The filesystem is about to write at the position of `iocb`. It is not what the call writes to if the file is another
 * one, such as that of a core dump, unless the call's file is of a filesystem that is stacked on this one. Returns true if the end
 * of the write is of interest.
 */
static __always_inline bool begin_write(const struct writer *w, struct kiocb *iocb)
{
	struct file *file = LOAD(iocb, ki_filp);
	bool was_open = false;
	struct call *call = 0;

	/* The function is that of all filesystems of its type. */
	if (is_traced_filesystem(LOAD(file, f_inode, i_sb, s_dev)) && !is_compat(w->task))
		call = remember_call(w->regs, w->how, file, &was_open);
	if (!call) {
		check_ended();
		return false;
	}
	if (was_open)
		lose_cause(LOSS_CAUSES_TASKS);
	if (file != call->file && !is_stacked(call->file)) {
		close_call(call);
		return true;
	}
	tell_below(call, LOAD(file, f_inode));
	call->iocb = iocb;
	return true;
}

/* With O_APPEND, and of a write at the file's position, only the filesystem knows where it wrote. */
static __always_inline int end_write(long result)
{
	struct call *call = current_call();
	struct kiocb *iocb;

	if (!call)
		return 0;
	iocb = call->iocb;
	if (iocb && result > 0)
		call->written_to = LOAD(iocb, ki_pos);
	finish_call(call, result);
	return 0;
}

/* The cookies of the functions of a session: those that carry out calls, and those by which filesystems write. */
enum { FUNCTION_CALLS, FUNCTION_WRITES };

extern bool bpf_session_is_return(void) __ksym __weak;
/* It has an argument from 7.0 on. */
extern bool bpf_session_is_return___context(void *context) __ksym __weak;

static __always_inline bool is_return(void *context)
{
	return bpf_ksym_exists(bpf_session_is_return___context) ? bpf_session_is_return___context(context) :
								 bpf_session_is_return();
}

/*
 * A function of a session begins or returns. If this returns 1 at the beginning, the kernel does not follow the
 * function to its return. The cookie is asked for only where the call does not say enough: the kernel searches all
 * functions for it.
 */
static __always_inline int pass_function(struct pt_regs *regs)
{
	bool returns = is_return(regs);
	struct writer w;

	if (find_writer(&w))
		return returns ? end_write(function_result(regs)) :
				 !begin_write(&w, (struct kiocb *)first_argument(regs));
	if (bpf_get_attach_cookie(regs) == FUNCTION_WRITES)
		return 1;
	return returns ? end_function(function_result(regs)) : begin_function();
}

#endif
