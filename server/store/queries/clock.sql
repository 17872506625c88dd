-- name: Now :one
-- The current time by the clock of the database.
select clock_timestamp()::timestamptz as at;
