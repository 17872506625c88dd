package store

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// The changes of a query are parsed from its text: exactly the queries that change rows are found.
func TestEveryQueryIsReadRightly(t *testing.T) {
	t.Parallel()
	query := regexp.MustCompile(`^-- name: (\w+) `)
	begins := regexp.MustCompile(
		`(?m)^\s*(insert into|update|delete from) (\w+)|as (?:materialized )?\(\s*(insert into|update|delete from) (\w+)`,
	)
	found, named := 0, 0
	for _, text := range QueryTexts(t) {
		name := query.FindStringSubmatch(text)[1]
		want := false
		for _, w := range begins.FindAllStringSubmatch(text, -1) {
			table := w[2] + w[4]
			want = want ||
				table != "audit_log" && table != "idempotency_keys" && table != "leases" &&
					table != "operator_challenges" && table != "server_keys"
		}
		s := statementOf(text)
		if s.writes != want {
			t.Errorf("%s: writes is %v, want %v", name, s.writes, want)
		}
		if s.writes {
			found++
		}
		if len(s.ids) > 0 {
			named++
		}
	}
	if found < 80 || named < 70 {
		t.Errorf("%d queries change something, %d say what", found, named)
	}
}

// QueryTexts are all queries that there are.
func QueryTexts(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("dbsqlc/*.sql.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	query := regexp.MustCompile("(?s)\nconst \\w+ = `(-- name: [^`]*)`")
	for _, file := range files {
		b, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range query.FindAllStringSubmatch(string(b), -1) {
			texts = append(texts, m[1])
		}
	}
	return texts
}

func TestWhatAStatementNames(t *testing.T) {
	t.Parallel()
	code, device, workspace := uuid.New(), uuid.New(), uuid.New()
	for name, c := range map[string]struct {
		sql  string
		args []any
		want string
	}{
		"inserted":           {dbsqlc.InsertAccessCode, append([]any{code, workspace, device}, make([]any, 40)...), "access_code_id workspace_id device_id"},
		"by a condition":     {dbsqlc.DeleteAccessCode, []any{code}, "access_code_id"},
		"absent":             {"-- name: X :exec\nupdate devices set nickname = $1 where device_id = $2", []any{"x", (*uuid.UUID)(nil)}, ""},
		"a pointer":          {"update devices set nickname = coalesce($1, lower('a,b')) where device_id = $2", []any{"x", &device}, "device_id"},
		"a list":             {"delete from devices where device_id = any($1::uuid[])", []any{[]uuid.UUID{device, code}}, "device_id device_id"},
		"values with commas": {"insert into devices (name, device_id)\nvalues (coalesce($1, lower('a,b')), $2::uuid)", []any{"x", device}, "device_id"},
		"an upsert":          {"insert into webhooks (webhook_id, url) values ($1, $2) on conflict (webhook_id) do update set url = $2", []any{device, "x"}, "webhook_id"},
		"what is no subject": {"insert into events (event_id, device_id) values ($1, $2)", []any{code, device}, "device_id"},
		"locked":             {"select * from devices where device_id = $1 for no key update of d", []any{device}, ""},
		"not audited":        {"delete from leases where device_id = $1", []any{device}, ""},
	} {
		var got []string
		statementOf(c.sql).named(c.args, func(kind string, _ uuid.UUID) { got = append(got, kind) })
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// A statement that is sure to change a row inserts its audit log entry unconditionally.
func TestOnlyPlainInsertsAreSureToChangeARow(t *testing.T) {
	t.Parallel()
	for text, sure := range map[string]bool{
		dbsqlc.InsertWebhook: true,
		dbsqlc.UpdateWebhook: false, dbsqlc.DeleteWebhook: false, dbsqlc.AnswerIdempotencyKey: false,
		"insert into devices (device_id)\nvalues ($1) on conflict do nothing":                       false,
		"insert into devices (device_id)\nselect $1::uuid where false":                              false,
		"insert into devices (device_id)\nvalues ($1) returning device_id":                          false,
		"with w as (select) insert into devices (device_id)\nvalues ($1)":                           false,
		"-- name: InsertDevice :exec\ninsert into devices (device_id, name)\nvalues ($1, 'values')": true,
	} {
		if s := statementOf(text); s.sure != sure {
			t.Errorf("sure is %v of %s", s.sure, text)
		}
	}
}

// A trace has the name of what changes the row, not that of the entry which is put with it.
func TestAChangeWithItsEntryGoesByTheNameOfTheChange(t *testing.T) {
	t.Parallel()
	for _, sure := range []bool{true, false} {
		if name := nameOf(withEntry(dbsqlc.InsertWebhook, dbsqlc.PutAuditEntry, 9, sure)); name != "InsertWebhook" {
			t.Errorf("sure %t: %s", sure, name)
		}
	}
}

// The text is made once: with each change it cost a thirtieth of the request.
func TestAChangeWithItsEntryIsPutTogetherOnce(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{dbsqlc.PutAuditEntry, dbsqlc.AddToAuditEntry} {
		once := withEntry(dbsqlc.DeleteWebhook, entry, 2, false)
		if again := withEntry(
			dbsqlc.DeleteWebhook,
			entry,
			2,
			false,
		); unsafe.StringData(
			once,
		) != unsafe.StringData(
			again,
		) {
			t.Errorf("put together again: %s", again)
		}
	}
}
