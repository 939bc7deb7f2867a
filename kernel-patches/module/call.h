/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_CALL_H
#define MOSTRACE_CALL_H

#include <linux/types.h>
#include "mostrace.h"

struct inode;
struct pt_regs;
struct mostrace_thread;

struct mostrace_call *mostrace_call_under_way(struct mostrace_thread *thread);
enum mostrace_call_kind mostrace_kind_running(struct mostrace_thread *thread);
void mostrace_call_tell_inode(struct mostrace_call *call, struct inode *inode);
void mostrace_call_begun(struct pt_regs *regs, long number);
void mostrace_call_ended(struct pt_regs *regs, long result);
void mostrace_call_unlinks(struct inode *inode);
void mostrace_call_renames(struct inode *inode);
void mostrace_call_syncs(struct inode *inode);

#endif
