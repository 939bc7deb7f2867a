// SPDX-License-Identifier: GPL-2.0-only
/* Which files keep their names in the file entries: what `record --files` takes. */
#include <linux/glob.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "internal.h"

#define NAMES_LEN 512
#define GLOBS_MAX 32

/* Of SQLite's temporary files, and what is kept beside them: bpf/src/names.rs. */
static const char *const temporary[] = {
	"*-journal", "*-wal", "*-shm", "*-mj*", "*.bak", "*.tmp", "etilqs_*",
};

static char spelling[NAMES_LEN] = "temp";
/* `spelling` cut at its commas, and the parts of it. */
static char parts[NAMES_LEN] = "temp";
static const char *wanted[GLOBS_MAX] = { parts };

static bool glob_wanted(const char *glob, const char *name)
{
	int i;

	if (!strcmp(glob, "all"))
		return true;
	if (strcmp(glob, "temp"))
		return glob_match(glob, name);
	for (i = 0; i < ARRAY_SIZE(temporary); i++)
		if (glob_match(temporary[i], name))
			return true;
	return false;
}

bool mostrace_name_wanted(const char *name)
{
	int i;

	for (i = 0; i < GLOBS_MAX && wanted[i]; i++)
		if (glob_wanted(wanted[i], name))
			return true;
	return false;
}

static int count_parts(const char *value)
{
	int n = 1;

	while ((value = strchr(value, ','))) {
		value++;
		n++;
	}
	return n;
}

static void set_names(const char *value, size_t len)
{
	char *rest = parts, *part;
	int i = 0;

	memcpy(spelling, value, len);
	spelling[len] = '\0';
	memcpy(parts, spelling, len + 1);
	while ((part = strsep(&rest, ",")))
		if (*part)
			wanted[i++] = part;
	while (i < GLOBS_MAX)
		wanted[i++] = NULL;
}

static int names_set(const char *value, const struct kernel_param *kp)
{
	size_t len = strcspn(value, "\n");

	if (len >= NAMES_LEN || count_parts(value) > GLOBS_MAX)
		return -EINVAL;
	if (!mostrace_claim())
		return -EBUSY;
	set_names(value, len);
	mostrace_release();
	return 0;
}

static int names_get(char *buffer, const struct kernel_param *kp)
{
	return scnprintf(buffer, PAGE_SIZE, "%s\n", spelling);
}

static const struct kernel_param_ops names_ops = { .set = names_set, .get = names_get };

module_param_cb(names, &names_ops, NULL, 0600);
MODULE_PARM_DESC(names, "files whose names are kept: temp, all or globs on the last path component, by commas (default temp)");
