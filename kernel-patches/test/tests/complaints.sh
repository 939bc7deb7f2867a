# SPDX-License-Identifier: MIT OR Apache-2.0
# The check of the kernel's messages finds every kind of complaint, and nothing in the messages of now.
check_kernel
while read -r line; do
	echo "$line" >/dev/kmsg
	! (check_kernel) >found.log || fail "not noticed: $line"
	dmesg -c >/dev/null
done <<'END'
BUG: KASAN: slab-use-after-free in mostrace_take+0x1/0x2 [mostrace]
BUG: kernel NULL pointer dereference, address: 0000000000000000
BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580
WARNING: CPU: 0 PID: 1 at kernel/tracepoint.c:1 tracepoint_probe_unregister+0x1/0x2
WARNING: possible recursive locking detected
WARNING: possible circular locking dependency detected
WARNING: suspicious RCU usage
WARNING: inconsistent lock state
INFO: task rmmod:123 blocked for more than 120 seconds.
rcu: INFO: rcu_preempt self-detected stall on CPU
INFO: trying to register non-static key.
INFO: lockdep is turned off.
ODEBUG: free active (active state 0) object type: timer_list hint: look+0x0/0x1
Oops: int3: 0000 [#1] PREEMPT SMP
END
