-- SPDX-License-Identifier: MIT OR Apache-2.0
-- What did each command, or Android package, make the device write, over all days of all ledgers? The rows of the hours themselves, which
-- have `watched_ms`, have no command and no such bytes.
WITH named AS (
    SELECT package, command, sum(write_bytes) AS device_bytes, sum(asked_bytes) AS asked_bytes, sum(flushes) AS flushes
    FROM ledger
    GROUP BY package, command
)
SELECT coalesce(package, command, '(unknown)') AS app,
    CAST(sum(device_bytes) AS BIGINT) AS device_bytes,
    CAST(sum(asked_bytes) AS BIGINT) AS asked_bytes,
    CAST(sum(flushes) AS BIGINT) AS flushes
FROM named
GROUP BY coalesce(package, command, '(unknown)')
ORDER BY device_bytes DESC NULLS LAST, app
