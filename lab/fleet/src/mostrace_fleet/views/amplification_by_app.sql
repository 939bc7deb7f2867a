-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Which app makes the device write how much more than it passed to write()? An app is an Android package, or else a process's name.
-- Only recordings that have calls and causes are counted. What an app did not ask for itself (the journal, the filesystem's metadata) is
-- charged to the app that caused it.
WITH recorded AS (
    SELECT bundle_id FROM recordings WHERE causes_source <> 'none'
), written AS (
    SELECT coalesce(cause_package, cause_comm) AS app, bundle_id, sum(bytes) AS bytes
    FROM causes
    WHERE op = 'write' AND bundle_id IN (SELECT bundle_id FROM recorded)
    GROUP BY coalesce(cause_package, cause_comm), bundle_id
), asked AS (
    SELECT coalesce(package, comm) AS app, bundle_id, sum(bytes) AS bytes
    FROM calls
    WHERE bytes IS NOT NULL AND bundle_id IN (SELECT bundle_id FROM recorded)
    GROUP BY coalesce(package, comm), bundle_id
), of_app AS (
    SELECT coalesce(written.app, asked.app) AS app,
        count(DISTINCT coalesce(written.bundle_id, asked.bundle_id)) AS recordings,
        CAST(sum(asked.bytes) AS BIGINT) AS asked_bytes,
        CAST(sum(written.bytes) AS BIGINT) AS device_bytes
    FROM written FULL JOIN asked ON written.app = asked.app AND written.bundle_id = asked.bundle_id
    GROUP BY coalesce(written.app, asked.app)
)
SELECT coalesce(app, '(unknown)') AS app, recordings, asked_bytes, device_bytes,
    CASE WHEN asked_bytes > 0 THEN round(CAST(device_bytes AS DOUBLE) / asked_bytes, 2) END AS amplification
FROM of_app
ORDER BY device_bytes DESC NULLS LAST, app NULLS LAST
