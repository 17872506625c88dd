-- +goose Up

alter table devices
  add column account_error         jsonb,     -- what keeps its account from working: code, message, at; null: it works
  add column reported_code_lengths integer[]; -- how many digits codes have, as somebody has reported it; null: as its vendor says
update devices d set account_error = jsonb_build_object('code', a.error_code, 'message', coalesce(a.error_message, ''), 'at', coalesce(a.error_at, now()))
from connected_accounts a where a.connected_account_id = d.connected_account_id and a.error_code is not null;

-- +goose Down
alter table devices drop column account_error, drop column reported_code_lengths;
