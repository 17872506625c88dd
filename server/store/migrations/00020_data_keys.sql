-- +goose Up

-- What sealed columns are sealed with. Their first byte is the key's identifier; where there is no such key it is the
-- master key's. A rotation is under way while the current key lacks resealed_at.
create table data_keys (
  key_id      smallint primary key check (key_id between 1 and 255),
  wrapped     bytea not null, -- by the master key
  is_current  boolean not null,
  created_at  timestamptz not null default now(),
  retired_at  timestamptz, -- since when another is the current one
  resealed_at timestamptz  -- when nothing was sealed with another any more
);
create unique index data_keys_current on data_keys (is_current) where is_current;

-- +goose Down
drop table data_keys;
