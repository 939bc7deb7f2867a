// SPDX-License-Identifier: GPL-2.0-only
/* The files whose names are kept in the file entries, in the syntax of `record --files`. */
#include <linux/glob.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "claim.h"
#include "names.h"

#define NAMES_LEN 512
#define GLOBS_MAX 32

/* SQLite's temporary files, and files kept next to them: `record --files temp`. */
static const char *const temporary[] = {
	"*-journal", "*-wal", "*-shm", "*-mj*", "*.bak", "*.tmp", "etilqs_*",
};

static char spelling[NAMES_LEN] = "temp";
/* `spelling`, divided at its commas. */
static char parts[NAMES_LEN];

/* Most globs have the form *TEXT or TEXT*, for which memcmp is faster than glob_match. */
static struct wanted {
	const char *glob;
	const char *text;
	size_t suffix;	/* length of TEXT, or 0 */
	size_t prefix;
} wanted[GLOBS_MAX + ARRAY_SIZE(temporary)];

static int wanted_count;
static bool all_wanted;

static bool is_wanted(const struct wanted *w, const char *name, size_t len)
{
	/* One byte is compared first, which rejects most names. */
	if (w->suffix)
		return len >= w->suffix && name[len - 1] == w->text[w->suffix - 1] &&
		       !memcmp(name + len - w->suffix, w->text, w->suffix);
	if (w->prefix)
		return len >= w->prefix && name[0] == w->text[0] &&
		       !memcmp(name, w->text, w->prefix);
	return glob_match(w->glob, name);
}

bool mostrace_name_wanted(const char *name, size_t len)
{
	int i;

	if (all_wanted)
		return true;
	for (i = 0; i < wanted_count; i++)
		if (is_wanted(&wanted[i], name, len))
			return true;
	return false;
}

static void want(const char *glob)
{
	const char *text = glob + (glob[0] == '*');
	size_t plain = strcspn(text, "*?[\\"), len = strlen(text);

	wanted[wanted_count++] = (struct wanted){
		.glob = glob,
		.text = text,
		.suffix = text != glob && plain == len ? len : 0,
		.prefix = text == glob && plain == len - 1 && text[plain] == '*' ? plain : 0,
	};
}

static void want_temporary(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(temporary); i++)
		want(temporary[i]);
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
	bool temp = false;

	memmove(spelling, value, len);
	spelling[len] = '\0';
	memcpy(parts, spelling, len + 1);
	wanted_count = 0;
	all_wanted = false;
	while ((part = strsep(&rest, ","))) {
		if (!strcmp(part, "all"))
			all_wanted = true;
		else if (!strcmp(part, "temp"))
			temp = true;
		else if (*part)
			want(part);
	}
	if (temp)
		want_temporary();
}

void __init mostrace_names_init(void)
{
	/* A parameter of the command line may have set them already. */
	if (!*parts)
		set_names(spelling, strlen(spelling));
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
