// SPDX-License-Identifier: GPL-2.0-only
/* The disks and partitions that are recorded. */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "claim.h"
#include "compat.h"
#include "target.h"

#define DEV_LEN 256
#define TARGETS_MAX 8

static char spelling[DEV_LEN];
static struct mostrace_target targets[TARGETS_MAX];
static int target_count;

bool mostrace_any_target(void)
{
	return target_count;
}

dev_t mostrace_disk(void)
{
	return targets[0].disk;
}

static const struct mostrace_target *target_of(const struct gendisk *disk, u64 sector,
					       u32 bytes, dev_t dev)
{
	const struct mostrace_target *t;

	if (!disk)
		return NULL;
	for (t = targets; t < targets + target_count; t++) {
		if (t->disk != MKDEV(disk->major, disk->first_minor))
			continue;
		if (bytes) {
			if (sector < t->end && sector + (((u64)bytes + 511) >> 9) > t->start)
				return t;
		} else if (!dev || t->dev == t->disk || t->dev == dev) {
			/*
			 * A flush has no sectors: it is recognised by its device, if that is known.
			 */
			return t;
		}
	}
	return NULL;
}

const struct mostrace_target *mostrace_target_of_bio(const struct bio *bio)
{
	return target_of(mostrace_bio_disk(bio), bio->bi_iter.bi_sector,
			 bio->bi_iter.bi_size, mostrace_bio_dev(bio));
}

static bool device_wanted(const struct gendisk *disk, dev_t dev)
{
	return target_of(disk, 0, 0, dev);
}

bool mostrace_device_of_bio_wanted(const struct bio *bio)
{
	return device_wanted(mostrace_bio_disk(bio), mostrace_bio_dev(bio));
}

/*
 * Returns true if an inode's data goes to a recorded disk. A device that is made of others (dm) may
 * be on one.
 */
bool mostrace_inode_wanted(const struct inode *inode)
{
	const struct block_device *bdev = mostrace_bdev_of(inode);

	if (!bdev || !bdev->bd_disk)
		return false;
	return device_wanted(bdev->bd_disk, bdev->bd_dev) || mostrace_is_bio_based(bdev->bd_disk);
}

static int find_path(const char *directory, const char *name, dev_t *dev)
{
	char *at = kasprintf(GFP_KERNEL, "%s%s", directory, name);
	int err;

	if (!at)
		return -ENOMEM;
	err = mostrace_lookup_bdev(at, dev);
	kfree(at);
	return err;
}

/* MAJ:MIN, a path, or the name of a node in /dev; on Android these are in /dev/block. */
static int find_dev(const char *name, dev_t *dev)
{
	unsigned int major, minor;
	char rest;
	int err;

	if (sscanf(name, "%u:%u%c", &major, &minor, &rest) == 2) {
		*dev = MKDEV(major, minor);
		return MAJOR(*dev) == major && MINOR(*dev) == minor ? 0 : -EINVAL;
	}
	if (name[0] == '/')
		return find_path("", name, dev);
	err = find_path("/dev/", name, dev);
	return err ? find_path("/dev/block/", name, dev) : 0;
}

static int add_target(const char *name, struct mostrace_target *t)
{
	struct block_device *bdev;
	struct file *file;
	bool known;
	u64 sectors;
	int err;

	err = find_dev(name, &t->dev);
	if (err)
		return err;
	bdev = mostrace_bdev_open(t->dev, &file);
	if (IS_ERR(bdev))
		return PTR_ERR(bdev);
	t->disk = disk_devt(bdev->bd_disk);
	known = mostrace_bdev_range(bdev, &t->start, &sectors);
	mostrace_bdev_close(bdev, file);
	if (!known)
		return -ENXIO;
	/* A whole disk may grow while it is recorded. */
	t->end = t->dev == t->disk ? U64_MAX : t->start + sectors;
	return 0;
}

static int add_targets(char *list, struct mostrace_target *found, int *n)
{
	char *name;
	int err;

	while ((name = strsep(&list, ","))) {
		name = strim(name);
		if (!*name)
			continue;
		if (*n == TARGETS_MAX)
			return -E2BIG;
		err = add_target(name, &found[*n]);
		if (err)
			return err;
		++*n;
	}
	return 0;
}

/*
 * Devices are looked up here and not when /dev/mostrace is opened: open runs under the lock of all
 * misc devices, and a driver that has to be loaded first may need that lock.
 */
static int dev_set(const char *value, const struct kernel_param *kp)
{
	struct mostrace_target found[TARGETS_MAX] = { };
	char *list;
	int n = 0, err;

	/*
	 * If the module is built in and this comes from the kernel's command line, there are no
	 * devices yet.
	 */
	if (system_state < SYSTEM_RUNNING)
		return -EAGAIN;
	if (strlen(value) >= DEV_LEN)
		return -EINVAL;
	if (!mostrace_claim())
		return -EBUSY;
	list = kstrdup(value, GFP_KERNEL);
	err = list ? add_targets(list, found, &n) : -ENOMEM;
	kfree(list);
	if (!err) {
		memcpy(targets, found, sizeof(targets));
		target_count = n;
		strscpy(spelling, value, sizeof(spelling));
		strim(spelling);
	}
	mostrace_release();
	return err;
}

static int dev_get(char *buffer, const struct kernel_param *kp)
{
	return scnprintf(buffer, PAGE_SIZE, "%s\n", spelling);
}

static const struct kernel_param_ops dev_ops = { .set = dev_set, .get = dev_get };

module_param_cb(dev, &dev_ops, NULL, 0600);
MODULE_PARM_DESC(dev, "disks or partitions to record, by commas: MAJ:MIN, a name in /dev or a path");
