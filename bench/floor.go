package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The rows of the floor, with the data of the server's responses.
type (
	floorDevice struct {
		DeviceID           uuid.UUID       `json:"device_id"`
		WorkspaceID        uuid.UUID       `json:"workspace_id"`
		ConnectedAccountID uuid.UUID       `json:"connected_account_id"`
		DeviceType         string          `json:"device_type"`
		Manufacturer       string          `json:"manufacturer"`
		Model              string          `json:"model"`
		SerialNumber       string          `json:"serial_number"`
		Name               string          `json:"name"`
		Online             bool            `json:"online"`
		Locked             *bool           `json:"locked"`
		BatteryLevel       *float64        `json:"battery_level"`
		Capabilities       json.RawMessage `json:"capabilities"`
		Flags              []string        `json:"flags"`
		CustomMetadata     json.RawMessage `json:"custom_metadata"`
		CreatedAt          time.Time       `json:"created_at"`
	}
	floorCode struct {
		AccessCodeID uuid.UUID  `json:"access_code_id"`
		WorkspaceID  uuid.UUID  `json:"workspace_id"`
		DeviceID     uuid.UUID  `json:"device_id"`
		Name         *string    `json:"name"`
		PIN          []byte     `json:"code"` // sealed
		StartsAt     *time.Time `json:"starts_at"`
		EndsAt       *time.Time `json:"ends_at"`
		Status       string     `json:"status"`
		CreatedAt    time.Time  `json:"created_at"`

		// The device determines a code's capabilities and problems.
		Online       bool            `json:"online"`
		RemovedAt    *time.Time      `json:"removed_at"`
		Capabilities json.RawMessage `json:"capabilities"`
		AccountError json.RawMessage `json:"account_error"`
	}
)

const (
	floorDevices = `select device_id, workspace_id, connected_account_id, device_type, manufacturer, model, serial_number, name, online, locked, battery_level,
		capabilities, flags, custom_metadata, created_at from devices where workspace_id = $1 `
	floorCodes = `select access_code_id, c.workspace_id, device_id, c.name, pin_sealed, starts_at, ends_at, status, c.created_at,
		online, removed_at, capabilities, account_error from access_codes c join devices d using (device_id) where c.workspace_id = $1 `
)

// serveFloor runs a minimal server for the same requests: chi, pgx, JSON, and a lookup of the credential.
func (b *bed) serveFloor(ctx context.Context, dsn string) error {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	cfg.MaxConns = connections
	if b.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	if _, err := b.pool.Exec(
		ctx,
		`create table bench_hooks (id uuid primary key, workspace_id uuid, url text, created_at timestamptz default now());
		create table bench_audit (id uuid primary key, workspace_id uuid, at timestamptz default now(), operation text, subject_ids uuid[]);
		create index on bench_audit using gin (subject_ids);
		create table bench_codes (id uuid primary key, workspace_id uuid, device_id uuid, name text, created_at timestamptz default now());
		create index on bench_codes (workspace_id, created_at, id); create index on bench_codes (device_id);
		create table bench_whole_codes (like access_codes including all); create table bench_attempts (like action_attempts including all);
		create table bench_events (like events including all); create table bench_log (like audit_log including all)`,
	); err != nil {
		return err
	}
	r := chi.NewRouter()
	r.Post("/devices", b.authenticated(selects[floorDevice](b, floorDevices+"and removed_at is null and is_managed "+
		"order by created_at, device_id limit 20")))
	r.Post("/device", b.authenticated(selects[floorDevice](b, floorDevices+"and device_id = ($2::jsonb ->> "+
		"'device_id')::uuid")))
	r.Post("/code", b.authenticated(selects[floorCode](b, floorCodes+"and access_code_id = ($2::jsonb ->> "+
		"'access_code_id')::uuid")))
	r.Post("/hook", b.authenticated(b.inserts("insert into bench_hooks (id, workspace_id, url) values ($1, $2, $3)")))
	r.Post(
		"/logged-hook",
		b.authenticated(
			b.inserts(
				`with log as (insert into bench_audit (id, workspace_id, operation, subject_ids) values (gen_random_uuid(), $2, '/hook', array[$1::uuid]))
		insert into bench_hooks (id, workspace_id, url) values ($1, $2, $3)`,
			),
		),
	)
	r.Post("/new-code", b.authenticated(func(ctx context.Context, workspace uuid.UUID, body []byte) (any, error) {
		var in struct {
			DeviceID uuid.UUID `json:"device_id"`
			Name     string    `json:"name"`
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		id := uuid.Must(uuid.NewV7())
		_, err := b.pool.Exec(ctx, "insert into bench_codes (id, workspace_id, device_id, name) values ($1, $2, "+
			"$3, $4)", id, workspace, in.DeviceID, in.Name)
		return map[string]any{"id": id, "name": in.Name}, err
	}))
	r.Post("/whole-new-code", b.authenticated(b.createsWhole))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.bareURL = "http://" + listener.Addr().String()
	b.bare = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go b.bare.Serve(listener) //nolint:errcheck // ends with close
	return nil
}

// createsWhole writes in one statement what the contract requires after the creation of a code: the code, the attempt,
// both events, and the audit entry, in tables with the server's columns and indexes.
func (b *bed) createsWhole(ctx context.Context, workspace uuid.UUID, body []byte) (any, error) {
	var in struct {
		DeviceID uuid.UUID `json:"device_id"`
		Name     string    `json:"name"`
		StartsAt time.Time `json:"starts_at"`
		EndsAt   time.Time `json:"ends_at"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	ids := make([]uuid.UUID, 5)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
	}
	_, err := b.pool.Exec(
		ctx,
		`with attempt as (insert into bench_attempts (action_attempt_id, workspace_id, device_id, access_code_id, action_type, status, deadline_at)
			values ($2, $6, $7, $1, 'CREATE_ACCESS_CODE', 'success', now() + interval '1 minute')),
		events as (insert into bench_events (event_id, workspace_id, event_type, device_id, access_code_id, payload, occurred_at, fanned_out_at)
			values ($3, $6, 'access_code.created', $7, $1, $11, now(), now()), ($4, $6, 'access_code.mutations_requested', $7, $1, $11, now(), now())),
		log as (insert into bench_log (audit_id, workspace_id, actor_kind, operation, subject_kinds, subject_ids, outcome)
			values ($5, $6, 'api_key', '/access_codes/create', '{access_code_id,action_attempt_id,device_id}', array[$1, $2, $7]::uuid[], 'done'))
		insert into bench_whole_codes (access_code_id, workspace_id, device_id, is_managed, name, starts_at, ends_at, status, pin_sealed, pin_mac)
			values ($1, $6, $7, true, $8, $9, $10, 'unset', $12, $13)`,
		ids[0],
		ids[1],
		ids[2],
		ids[3],
		ids[4],
		workspace,
		in.DeviceID,
		in.Name,
		in.StartsAt,
		in.EndsAt,
		map[string]any{"device_id": in.DeviceID, "access_code_id": ids[0], "device_custom_metadata": map[string]any{}},
		make([]byte, 48),
		ids[0][:],
	)
	return map[string]any{
		"id":                ids[0],
		"action_attempt_id": ids[1],
		"name":              in.Name,
		"starts_at":         in.StartsAt,
		"ends_at":           in.EndsAt,
	}, err
}

// inserts creates a webhook with a statement: $1 is its identifier, $2 the workspace, and $3 the URL.
func (b *bed) inserts(statement string) func(context.Context, uuid.UUID, []byte) (any, error) {
	return func(ctx context.Context, workspace uuid.UUID, body []byte) (any, error) {
		var in struct {
			URL string `json:"url"`
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		id := uuid.Must(uuid.NewV7())
		_, err := b.pool.Exec(ctx, statement, id, workspace, in.URL)
		return map[string]any{"id": id, "url": in.URL}, err
	}
}

// selects returns the rows of a query. $1 is the workspace, and $2 the body of the request if the query uses it.
func selects[T any](b *bed, query string) func(context.Context, uuid.UUID, []byte) (any, error) {
	return func(ctx context.Context, workspace uuid.UUID, body []byte) (any, error) {
		args := []any{workspace}
		if strings.Contains(query, "$2") {
			args = append(args, body)
		}
		rows, err := b.pool.Query(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return map[string]any{"found": found, "ok": true}, err
	}
}

func (b *bed) authenticated(f func(
	ctx context.Context,
	workspace uuid.UUID,
	body []byte,
) (any, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		hash := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		var workspace uuid.UUID
		err := b.pool.QueryRow(
			r.Context(),
			`select w.workspace_id from credentials c join credential_workspaces w using (credential_id)
			where c.token_hash = $1 and c.revoked_at is null`,
			hash[:],
		).Scan(&workspace)
		if err != nil {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := f(r.Context(), workspace, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(out) //nolint:errcheck // the load generator counts complete responses
	}
}
