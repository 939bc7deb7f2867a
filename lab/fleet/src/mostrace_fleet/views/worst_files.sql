-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Which files cost the most written bytes? Everything counts that was written because of a call on the file: its data, its part of the
-- journal and of the metadata. A path stands for the files of that name in all recordings.
SELECT coalesce(cause_path, '(unknown)') AS file, cause_role AS role,
    count(DISTINCT bundle_id) AS recordings,
    CAST(sum(bytes) AS BIGINT) AS device_bytes,
    CAST(sum(CASE WHEN cause_op = 'fsync' THEN bytes ELSE 0 END) AS BIGINT) AS fsync_bytes
FROM causes
WHERE op = 'write'
GROUP BY cause_path, cause_role
ORDER BY device_bytes DESC, file, role NULLS LAST
LIMIT 100
