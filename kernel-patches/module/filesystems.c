// SPDX-License-Identifier: GPL-2.0-only
/*
 * The filesystems whose causes are recorded, by their devices; if there are none, no causes are
 * recorded.
 */
#include <linux/kernel.h>
#include <linux/kdev_t.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "claim.h"
#include "filesystems.h"

#define FILESYSTEMS_LEN 512
#define FILESYSTEMS_MAX 32

static char spelling[FILESYSTEMS_LEN];
static dev_t filesystems[FILESYSTEMS_MAX];
static int filesystem_count;

bool mostrace_any_filesystem(void)
{
	return filesystem_count;
}

bool mostrace_filesystem_wanted(dev_t s_dev)
{
	int i;

	for (i = 0; i < filesystem_count; i++)
		if (filesystems[i] == s_dev)
			return true;
	return false;
}

static int parse(char *list, dev_t *found, int *n)
{
	unsigned int major, minor;
	char *name, rest;

	while ((name = strsep(&list, ","))) {
		name = strim(name);
		if (!*name)
			continue;
		if (*n == FILESYSTEMS_MAX)
			return -E2BIG;
		if (sscanf(name, "%u:%u%c", &major, &minor, &rest) != 2)
			return -EINVAL;
		found[(*n)++] = MKDEV(major, minor);
	}
	return 0;
}

static int filesystems_set(const char *value, const struct kernel_param *kp)
{
	dev_t found[FILESYSTEMS_MAX];
	int n = 0, err;
	char *list;

	if (strlen(value) >= FILESYSTEMS_LEN)
		return -EINVAL;
	if (!mostrace_claim())
		return -EBUSY;
	list = kstrdup(value, GFP_KERNEL);
	err = list ? parse(list, found, &n) : -ENOMEM;
	kfree(list);
	if (!err) {
		memcpy(filesystems, found, sizeof(filesystems));
		filesystem_count = n;
		strscpy(spelling, value, sizeof(spelling));
		strim(spelling);
	}
	mostrace_release();
	return err;
}

static int filesystems_get(char *buffer, const struct kernel_param *kp)
{
	return scnprintf(buffer, PAGE_SIZE, "%s\n", spelling);
}

static const struct kernel_param_ops filesystems_ops = { .set = filesystems_set, .get = filesystems_get };

module_param_cb(filesystems, &filesystems_ops, NULL, 0600);
MODULE_PARM_DESC(filesystems, "filesystems whose causes are recorded, MAJ:MIN of their devices, by commas (default none)");
