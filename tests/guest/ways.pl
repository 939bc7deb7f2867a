# SPDX-License-Identifier: MIT OR Apache-2.0
# Changes files in every way that docs/CHANGES.md lists, and judges by the files' contents what a recording says of it. For x86-64.
#
# ways.pl list               prints the ways
# ways.pl make FOLDER        makes the files that are there before the recording
# ways.pl do FOLDER          for each way: aaaA writes a file WAY, zzzZ changes it, synS syncs it; prints the ways that the kernel refuses
# ways.pl judge DEVICE ROWS  judges ROWS, a CSV of path,sector,bytes,cause_comm,cause_known,bytes of the causer,completion in the
#                            order of completion, by what is on the device
use strict;
use warnings;
use Fcntl;
use DynaLoader;

my ($BLOCK, $BLOCKS) = (4096, 8);
my $SIZE = $BLOCK * $BLOCKS;
# FALLOC_FL_…
my ($KEEP, $PUNCH, $COLLAPSE, $ZERO, $INSERT) = (1, 2, 8, 0x10, 0x20);

sub check { my ($result, $what) = @_; $result == -1 and die "$what: $!\n"; $result }
# The arguments are not copied: the kernel writes to some.
sub call { my ($name, $number) = splice(@_, 0, 2); check(syscall($number, @_), $name) }
sub name { call("prctl", 157, 15, "$_[0]\0") }
sub file { my ($path, $flags) = @_; sysopen(my $file, $path, $flags // O_RDWR) or die "$path: $!\n"; $file }
sub address { unpack("Q", pack("P", $_[0])) }

# A pipe takes bytes to and from memory that perl has no variable for.
pipe(my $from, my $to) or die "pipe: $!";
sub poke {
	my ($at, $bytes) = @_;
	syswrite($to, $bytes) == length $bytes or die "poke: $!";
	call("poke", 0, fileno $from, $at, length $bytes);
}
sub peek {
	my ($at, $count) = @_;
	call("peek", 1, fileno $to, $at, $count);
	sysread($from, my $bytes, $count) == $count or die "peek: $!";
	return $bytes;
}
sub map_file { my ($file, $length, $offset) = @_; call("mmap", 9, 0, $length, 3, 1, fileno $file, $offset) }

# A request to io_uring by its system calls; <linux/io_uring.h> has the layouts.
sub request {
	my ($opcode, $flags, $file, $off, $addr, $len) = @_;
	my $params = "\0" x 120;
	my $ring = call("io_uring_setup", 425, 4, $params);
	my @words = unpack("L30", $params);
	my ($tail, $array, $cq_tail, $cqes) = @words[11, 16, 21, 25];
	open(my $fd, "+<&=", $ring) or die "io_uring: $!";
	my $rings = map_file($fd, $BLOCK, 0);
	my $sqes = map_file($fd, $BLOCK, 0x10000000);
	poke($sqes, pack("CCSlQQLL", $opcode, $flags, 0, fileno $file, $off, $addr, $len, 0) . "\0" x 32);
	poke($rings + $array, pack("L", 0));
	poke($rings + $tail, pack("L", 1));
	my $skips = $flags & 64;
	call("io_uring_enter", 426, $ring, 1, $skips ? 0 : 1, 1, 0, 0);
	# A request without a completion is over when its ring is closed and some time has passed.
	return select(undef, undef, undef, 0.3) if $skips;
	my ($result) = unpack("x8l", peek($rings + $cqes, 16));
	$result >= 0 or do { $! = -$result; die "io_uring $opcode: $!\n" };
}

# A call of the 32-bit ABI, in a process of its own that ends with it: code that calls int 0x80 and then exit.
sub call32 {
	my ($name, @registers) = @_;
	my $memory = call("mmap", 9, 0, $BLOCK, 7, 0x62, -1, 0);
	my $data = $memory + 1024;
	poke($data, "Z" x 200);
	@registers = map { $_ eq "DATA" ? $data : $_ } @registers, (0) x 7;
	my @codes = (0xb8, 0xbb, 0xb9, 0xba, 0xbe, 0xbf, 0xbd);
	my $code = join "", map { pack("CL", $codes[$_], $registers[$_]) } 0 .. 6;
	poke($memory, $code . "\xcd\x80\x89\xc7\xc1\xef\x1f\xb8\x3c\0\0\0\x0f\x05");
	my $child = fork // die "fork: $!";
	if (!$child) {
		DynaLoader::dl_install_xsub("main::run32", $memory);
		run32();
	}
	waitpid($child, 0);
	$? == 0 or die "$name: ended with $?\n";
}

sub fallocate { my ($path, $mode, $from, $bytes) = @_; call("fallocate", 285, fileno file($path), $mode, $from, $bytes) }
# struct space_resv
sub resv {
	my ($path, $command) = @_;
	my $range = pack("ssx4qqlLx16", 0, 0, 100, 200, 0, 0);
	ioctl(file($path), $command, $range) or die "ioctl: $!\n";
}
sub other { my ($path, $bytes) = @_; my $other = file("$path.other", O_RDWR | O_CREAT); syswrite($other, $bytes); $other }
sub atomic { my ($file, $command) = @_; ioctl($file, $command, 0) or die "ioctl: $!\n" }

# What zzzZ does with the file of 8 blocks of A. Each is the name of a row in docs/CHANGES.md.
my @WAYS = (
	nothing => sub { file($_[0]) },
	pwrite64 => sub { my $z = "Z" x 200; call("pwrite64", 18, fileno file($_[0]), $z, 200, 100) },
	write => sub { my $f = file($_[0]); sysseek($f, 4500, 0); syswrite($f, "Z" x 200) },
	append => sub { syswrite(file($_[0], O_WRONLY | O_APPEND), "Z" x 200) },
	o_sync => sub { syswrite(file($_[0], O_WRONLY | O_SYNC), "Z" x 200) },
	pwritev => sub {
		my $z = "Z" x 200;
		call("pwritev", 296, fileno file($_[0]), pack("QQ", address($z), 200), 1, 100, 0);
	},
	io_submit => sub {
		my ($f, $z, $context) = (file($_[0]), "Z" x 200, "\0" x 8);
		call("io_setup", 206, 4, $context);
		my $iocb = pack("QLLSsLQQqQLL", 0, 0, 0, 1, 0, fileno $f, address($z), 200, 100, 0, 0, 0);
		my ($id) = unpack("Q", $context);
		call("io_submit", 209, $id, 1, pack("Q", address($iocb)));
		my $events = "\0" x 64;
		call("io_getevents", 208, $id, 1, 1, $events, 0);
	},
	uring_write => sub { my $z = "Z" x 200; request(23, 0, file($_[0]), 100, address($z), 200) },
	uring_write_skip => sub { my $z = "Z" x 200; request(23, 64, file($_[0]), 100, address($z), 200) },
	write_32 => sub { my $f = file($_[0]); call32("pwrite64", 181, fileno $f, "DATA", 200, 100) },
	direct => sub {
		my $memory = call("mmap", 9, 0, $BLOCK, 3, 0x22, -1, 0);
		poke($memory, "Z" x $BLOCK);
		call("pwrite64", 18, fileno file($_[0], O_RDWR | 040000), $memory, $BLOCK, $BLOCK);
	},
	copy_file_range => sub {
		my ($f, $source) = (file($_[0]), other($_[0], "Z" x 200));
		call("copy_file_range", 326, fileno $source, pack("q", 0), fileno $f, pack("q", 100), 200, 0);
	},
	sendfile => sub {
		my ($f, $source) = (file($_[0]), other($_[0], "Z" x 200));
		sysseek($f, 100, 0);
		call("sendfile", 40, fileno $f, fileno $source, pack("q", 0), 200);
	},
	splice => sub {
		syswrite($to, "Z" x 200);
		call("splice", 275, fileno $from, 0, fileno file($_[0]), pack("q", 100), 200, 0);
	},
	ftruncate => sub { call("ftruncate", 77, fileno file($_[0]), 5000) },
	truncate => sub { call("truncate", 76, $_[0], 5000) },
	truncate_and_grow => sub { my $f = file($_[0]); call("ftruncate", 77, fileno $f, $_) for 5000, $SIZE },
	truncate_32 => sub { my $f = file($_[0]); call32("ftruncate", 93, fileno $f, 5000) },
	uring_ftruncate => sub { request(55, 0, file($_[0]), 5000, 0, 0) },
	uring_ftruncate_skip => sub { request(55, 64, file($_[0]), 5000, 0, 0) },
	o_trunc => sub { syswrite(file($_[0], O_WRONLY | O_TRUNC), "Z" x 200) },
	uring_o_trunc => sub {
		my $path = "$_[0]\0";
		open(my $here, "<", "/") or die;
		# openat2
		my $how = pack("QQQ", O_WRONLY | O_TRUNC, 0, 0);
		request(28, 0, $here, address($how), address($path), 24);
	},
	fallocate_keep => sub { fallocate($_[0], $KEEP, 0, 2 * $SIZE) },
	fallocate_punch => sub { fallocate($_[0], $PUNCH | $KEEP, 100, 200) },
	fallocate_zero => sub { fallocate($_[0], $ZERO, 100, 200) },
	fallocate_collapse => sub { fallocate($_[0], $COLLAPSE, $BLOCK, $BLOCK) },
	fallocate_insert => sub { fallocate($_[0], $INSERT, $BLOCK, $BLOCK) },
	fallocate_32 => sub { my $f = file($_[0]); call32("fallocate", 324, fileno $f, $PUNCH | $KEEP, 100, 0, 200, 0) },
	uring_punch => sub { request(17, 0, file($_[0]), 100, 200, $PUNCH | $KEEP) },
	uring_punch_skip => sub { request(17, 64, file($_[0]), 100, 200, $PUNCH | $KEEP) },
	ioctl_resvsp => sub { resv($_[0], 0x40305828) },
	ioctl_unresvsp => sub { resv($_[0], 0x40305829) },
	ioctl_unresvsp64 => sub { resv($_[0], 0x4030582b) },
	ioctl_zero_range => sub { resv($_[0], 0x40305839) },
	madv_remove => sub { call("madvise", 28, map_file(file($_[0]), $SIZE, 0) + $BLOCK, $BLOCK, 9) },
	mmap_store => sub { poke(map_file(file($_[0]), $SIZE, 0) + 100, "Z" x 200) },
	mmap_store_unmap => sub {
		my $at = map_file(file($_[0]), $SIZE, 0);
		poke($at + 100, "Z" x 200);
		call("munmap", 11, $at, $SIZE);
	},
	ficlone => sub {
		my $source = other($_[0], "Z" x $SIZE);
		ioctl(file($_[0]), 0x40049409, fileno $source) or die "ioctl: $!\n";
	},
	ext4_move_ext => sub {
		my $donor = other($_[0], "Z" x $SIZE);
		call("fsync", 74, fileno $_) for $donor, file($_[0]);
		my $move = pack("LLQQQQ", 0, fileno $donor, 0, 0, 2, 0);
		ioctl(file($_[0]), 0xc028660f, $move) or die "ioctl: $!\n";
	},
	f2fs_move_range => sub {
		my $source = other($_[0], "Z" x $SIZE);
		my $range = pack("LLQQQ", fileno file($_[0]), 0, 0, $BLOCK, $BLOCK);
		ioctl($source, 0xc020f509, $range) or die "ioctl: $!\n";
	},
	f2fs_defragment => sub { ioctl(file($_[0]), 0xc010f508, pack("QQ", 0, $SIZE)) or die "ioctl: $!\n" },
	f2fs_atomic => sub {
		my $f = file($_[0]);
		atomic($f, 0xf501);
		syswrite($f, "Z" x 200);
		atomic($f, 0xf502);
	},
	f2fs_atomic_abort => sub {
		my $f = file($_[0]);
		atomic($f, 0xf501);
		syswrite($f, "X" x 200);
		atomic($f, 0xf505);
		sysseek($f, 1000, 0);
		syswrite($f, "Z" x 200);
	},
	# The file is in the lower folder of an overlay.
	copy_up => sub { call("pwrite64", 18, fileno file($_[0]), "Z" x 200, 200, 100) },
	copy_up_truncate => sub { call("truncate", 76, $_[0], 5000) },
);
my @NAMES = @WAYS[grep { $_ % 2 == 0 } 0 .. $#WAYS];
my %WAYS = @WAYS;
# These files are not written by aaaA, but before the recording.
my %OLD = map { $_ => 1 } qw(copy_up copy_up_truncate);

# Runs the code in a process of its own with this name; returns its message if it fails.
sub as {
	my ($name, $code) = @_;
	pipe(my $said, my $says) or die "pipe: $!";
	my $child = fork // die "fork: $!";
	if (!$child) {
		close $said;
		name($name);
		eval { $code->() };
		syswrite($says, $@) if $@;
		syscall(231, 0);
	}
	close $says;
	my $message = do { local $/; <$said> } // "";
	waitpid($child, 0);
	return $message || ($? ? "ended with $?\n" : "");
}

sub do_all {
	my ($folder) = @_;
	for my $way (@NAMES) {
		my $path = "$folder/$way";
		next if $OLD{$way} && !-e $path;
		$OLD{$way} or as("aaaA", sub { syswrite(file($path, O_RDWR | O_CREAT), "A" x $SIZE) }) and die "$path: $!";
		my $refused = as("zzzZ", sub { $WAYS{$way}->($path) });
		print "$way: $refused" if $refused;
		as("synS", sub { call("fsync", 74, fileno file($path)) });
	}
}

# Reads a block of the device, and returns whose bytes are in it: aaaA writes whole blocks, and what is no A is zzzZ's work.
sub owners {
	my ($device, $sector) = @_;
	sysseek($device, $sector * 512, 0);
	sysread($device, my $block, $BLOCK) == $BLOCK or die "sector $sector: $!\n";
	return ($block =~ /A/ ? "aaaA" : (), $block =~ /[^A]/ ? "zzzZ" : ());
}

# Judges what is said of a row of one file, as far as it is on the device still; returns what is wrong. A row may have several blocks and
# several causers; how many bytes each word has says whether it can be true. Only `exact` and `shared` claim to be complete.
sub judge_row {
	my ($way, $device, $row) = @_;
	my (%bytes, %said);
	for my $sector (@{ $row->{sectors} }) {
		my $owners = join "+", owners($device, $sector);
		# Of what was written before, only what came afterwards is to be told.
		$owners .= " again" if $owners eq "aaaA+zzzZ" && $row->{again}{$sector};
		$bytes{$owners} += $BLOCK;
	}
	for my $share (@{ $row->{shares} }) {
		$said{"$share->{who}/$share->{known}"} += $share->{bytes};
	}
	my ($a, $z, $both, $again) = map { $bytes{$_} // 0 } "aaaA", "zzzZ", "aaaA+zzzZ", "aaaA+zzzZ again";
	my $shared = ($said{"aaaA/shared"} // 0) + ($said{"zzzZ/shared"} // 0);
	# Of what zzzZ overwrote, aaaA may be a causer too; O_TRUNC drops it.
	my $is_wrong = ($said{"aaaA/exact"} // 0) > $a || ($said{"zzzZ/exact"} // 0) > $z + $again ||
		$shared > $both + $again + ($way =~ /o_trunc/ ? 0 : $z) || grep { m{/(exact|shared)$} && !/^(aaaA|zzzZ)/ } keys %said;
	my $claim = join ", ", map { "$_ $said{$_}" } sort keys %said;
	my $is = join ", ", map { "$_ $bytes{$_}" } sort keys %bytes;
	my $is_seen = grep { /^zzzZ/ } keys %said;
	return ({ changed => $z + $both + $again, seen => $is_seen, claim => $claim },
		$is_wrong ? "$way: sector $row->{sectors}[0]: bytes of $is, said $claim" : ());
}

sub judge {
	my ($way, $device, @rows) = @_;
	my (@wrong, @claims, $is_seen, $is_changed);
	for my $row (grep { @{ $_->{sectors} } } @rows) {
		my ($of, @is_wrong) = judge_row($way, $device, $row);
		push @wrong, @is_wrong;
		push @claims, $of->{claim};
		$is_changed ||= $of->{changed};
		$is_seen ||= $of->{changed} && $of->{seen};
	}
	print "$way: ", !$is_changed ? "unchanged" : $is_seen ? "seen" : "NOT SEEN", ": ", join("; ", @claims), "\n";
	return @wrong;
}

# Reads the rows, and returns those of each way, with the sectors that no later row has written.
sub rows_of {
	my ($rows) = @_;
	my (%all, %last);
	open(my $table, "<", $rows) or die "$rows: $!";
	<$table>;
	while (<$table>) {
		chomp;
		my ($path, $sector, $bytes, $who, $known, $share, $completion) = split /,/;
		my ($way) = $path =~ m{([^/]+)$};
		my $row = $all{"$completion $sector"} //= { way => $way // "", order => $., from => $sector, bytes => $bytes, shares => [] };
		push @{ $row->{shares} }, { who => $who, known => $known, bytes => $share };
	}
	my @all = sort { $a->{order} <=> $b->{order} } values %all;
	for my $row (@all) {
		for (my $at = $row->{from}; $at < $row->{from} + $row->{bytes} / 512; $at += $BLOCK / 512) {
			$row->{again}{$at} = 1 if $last{$at};
			$last{$at} = $row;
		}
	}
	push @{ $last{$_}{sectors} }, $_ for sort { $a <=> $b } keys %last;
	my %of;
	for my $row (@all) {
		# A row of which a part was written again is judged by neither part.
		$row->{sectors} = [] if @{ $row->{sectors} // [] } * $BLOCK != $row->{bytes};
		push @{ $of{$row->{way}} }, $row;
	}
	return %of;
}

my ($verb, $folder, $rows) = @ARGV;
if ($verb eq "list") {
	print "$_\n" for @NAMES;
} elsif ($verb eq "make") {
	syswrite(file("$folder/$_", O_RDWR | O_CREAT), "L" x $SIZE) for sort keys %OLD;
} elsif ($verb eq "do") {
	do_all($folder);
} elsif ($verb eq "judge") {
	my %of = rows_of($rows);
	open(my $device, "<", $folder) or die "$folder: $!\n";
	my @wrong = map { judge($_, $device, @{ $of{$_} }) } grep { $of{$_} } @NAMES;
	print "WRONG $_\n" for @wrong;
	exit 1 if @wrong;
}
