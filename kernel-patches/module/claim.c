// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recorder is one's at a time: of the reader that has the device open, or of
 * whoever changes a parameter.
 */
#include <linux/bitops.h>
#include "claim.h"

static unsigned long claimed;

/* Whether it was free, and is the caller's now. */
bool mostrace_claim(void)
{
	return !test_and_set_bit_lock(0, &claimed);
}

void mostrace_release(void)
{
	clear_bit_unlock(0, &claimed);
}
