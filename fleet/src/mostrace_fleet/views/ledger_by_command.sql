-- SPDX-License-Identifier: MIT OR Apache-2.0
-- What did each command, or Android package, make the device write, over all days of all ledgers?
SELECT coalesce(package, command, '(unknown)') AS app,
    CAST(sum(write_bytes) AS BIGINT) AS device_bytes,
    CAST(sum(asked_bytes) AS BIGINT) AS asked_bytes,
    CAST(sum(flushes) AS BIGINT) AS flushes
FROM ledger
WHERE watched_ms IS NULL
GROUP BY coalesce(package, command, '(unknown)')
ORDER BY device_bytes DESC NULLS LAST, app
