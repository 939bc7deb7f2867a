// SPDX-License-Identifier: GPL-2.0-only
/*
 * Only one user at a time owns the recorder: the reader that has the device open, or the task that
 * is changing a parameter.
 */
#include <linux/bitops.h>
#include "claim.h"

static unsigned long claimed;

/* Returns true if the recorder was free; the caller owns it then. */
bool mostrace_claim(void)
{
	return !test_and_set_bit_lock(0, &claimed);
}

void mostrace_release(void)
{
	clear_bit_unlock(0, &claimed);
}
