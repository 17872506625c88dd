-- +goose Up

set local lock_timeout = '200ms';
alter table acs_users add column blocked_by uuid; -- with blocked_gen: the system takes it for this user, and once that is gone for nobody

-- Of who was taken over the system keeps no identifier of ours: only how it named them, and who they were.
alter table acs_users_gone
  add column vendor_ref text,
  add column who        bytea,       -- a hash of name, address and number: the reference may be another's by now
  add column ref_until  timestamptz; -- later than that, whoever is found so was put there again

-- +goose Down
alter table acs_users_gone drop column vendor_ref, drop column who, drop column ref_until;
alter table acs_users drop column blocked_by;
