package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// kept is a PIN or a webhook's secret and the request that reads it.
type kept struct{ path, question, secret string }

func keptPIN(code, pin string) kept {
	return kept{"/access_codes/get", fmt.Sprintf(`{"access_code_id":%q}`, code), pin}
}

func keptSecret(hook, secret string) kept {
	return kept{"/webhooks/get", fmt.Sprintf(`{"webhook_id":%q}`, hook), secret}
}

// vault is a server with secrets, and a connection to its database.
type vault struct {
	*program
	server ready
	db     *store.DB
	keys   *encryption.Keys
	all    []kept
	asked  int
}

// newVault starts a server with encrypted secrets.
func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{program: newProgram(t)}
	v.server, _ = v.serve("--sandbox-speed", "100")
	masters, err := encryption.ReadOrCreateFile(filepath.Join(v.dir, "data", "master.key"))
	if err == nil {
		v.keys, err = encryption.New(masters...)
	}
	if err == nil {
		v.db, err = store.Open(t.Context(), v.database, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.db.Close)
	if err := keyrotation.FollowKeys(t.Context(), v.db, v.keys, false); err != nil {
		t.Fatal(err)
	}
	return v
}

// copied inserts n copies of a row, each with its own secret and few per block, so that a rotation needs many batches.
func (v *vault) copied(
	table, place, of string,
	n int,
	secret func(int) string,
	mac func(string) []byte,
) (ids []string) {
	v.Helper()
	var sealed, macs [][]byte
	for i := range n {
		ids = append(ids, uuid.NewString())
		sealed = append(sealed, v.keys.Seal(place+ids[i], []byte(secret(i))))
		macs = append(macs, mac(secret(i)))
	}
	id, column, _ := strings.Cut(
		map[string]string{"access_codes": "access_code_id pin_sealed", "webhooks": "webhook_id secret_sealed"}[table],
		" ",
	)
	_, err := v.db.Pool.Exec(v.Context(), fmt.Sprintf("alter table %s set (fillfactor = 10)", table))
	if err == nil {
		_, err = v.db.Pool.Exec(v.Context(), fmt.Sprintf(`insert into %[1]s
			select (jsonb_populate_record(c, jsonb_build_object('%[2]s', n.id, '%[3]s', n.sealed, 'pin_mac', n.mac))).*
			from %[1]s c, unnest($2::uuid[], $3::bytea[], $4::bytea[]) n(id, sealed, mac) where c.%[2]s = $1`, table, id, column), of, ids, sealed, macs)
	}
	if err != nil {
		v.Fatal(err)
	}
	return ids
}

// fill creates codes that are not due yet, and webhooks without deliveries.
func (v *vault) fill(codes, hooks int) (ids []string) {
	v.Helper()
	device := v.furnish(v.server, "471290")
	for id, pin := range v.inventory(v.server, v.server.APIKey).Codes {
		v.all = append(v.all, keptPIN(id, pin))
	}
	var out struct {
		Code struct {
			ID  string `json:"access_code_id"`
			PIN string `json:"code"`
		} `json:"access_code"`
		Hook struct {
			ID     string `json:"webhook_id"`
			Secret string
		} `json:"webhook"`
	}
	for path, body := range map[string]string{
		"/webhooks/create":     `{"url":"https://hooks.example/x","event_types":["device.tampered"]}`,
		"/access_codes/create": fmt.Sprintf(`{"device_id":%q,"code":"580132","starts_at":"2999-01-01T12:00:00Z","ends_at":"2999-01-02T12:00:00Z"}`, device),
	} {
		if status := v.post(v.server, v.server.APIKey, path, body, &out); status != http.StatusOK {
			v.Fatalf("%s: %d", path, status)
		}
	}
	v.all = append(v.all, keptPIN(out.Code.ID, out.Code.PIN), keptSecret(out.Hook.ID, out.Hook.Secret))

	pin := func(i int) string { return fmt.Sprint(600000 + 7*i) }
	scope := "access_codes.pin/device/" + device
	ids = v.copied(
		"access_codes",
		"access_codes.pin/",
		out.Code.ID,
		codes,
		pin,
		func(pin string) []byte { return v.keys.MAC(scope, []byte(pin)) },
	)
	for i, id := range ids {
		v.all = append(v.all, keptPIN(id, pin(i)))
	}
	secret := func(i int) string { return fmt.Sprintf("whsec_copy%06d", i) }
	for i, id := range v.copied("webhooks", "webhooks.secret/", out.Hook.ID, hooks, secret, func(string) []byte { return nil }) {
		v.all = append(v.all, keptSecret(id, secret(i)))
	}
	return ids
}

// ask reads the next secret from the server.
func (v *vault) ask() {
	v.Helper()
	k := v.all[v.asked%len(v.all)]
	v.asked++
	var out struct {
		Code struct {
			PIN string `json:"code"`
		} `json:"access_code"`
		Hook struct{ Secret string } `json:"webhook"`
	}
	if status := v.post(
		v.server,
		v.server.APIKey,
		k.path,
		k.question,
		&out,
	); status != http.StatusOK ||
		cmp.Or(out.Code.PIN, out.Hook.Secret) != k.secret {
		v.Fatalf("%s %s is answered %d or with another secret", k.path, k.question, status)
	}
}

func (v *vault) askAll() {
	v.Helper()
	for range v.all {
		v.ask()
	}
}

// meanwhile reads secrets until an SQL condition is true.
func (v *vault) meanwhile(sql string) {
	v.Helper()
	v.until(sql, func() (yes bool) {
		v.ask()
		if err := v.db.Pool.QueryRow(v.Context(), "select "+sql).Scan(&yes); err != nil {
			v.Fatal(err)
		}
		return yes
	})
}

// waiting is the SQL condition that n rotations wait for a locked code.
func waiting(n int) string {
	return fmt.Sprintf(
		"(select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and "+
			"query like 'update access_codes t set pin_sealed%%') = %d",
		n,
	)
}

// left returns how many PINs and secrets are encrypted with another key than the current one.
func (v *vault) left() (pins, all int64, keys []dbsqlc.DataKey) {
	v.Helper()
	keys, err := v.db.ListDataKeys(v.Context())
	if err != nil || len(keys) == 0 {
		v.Fatal(keys, err)
	}
	for _, c := range store.SealedColumns() {
		key := byte(keys[len(keys)-1].KeyID)
		if c.Hashed() {
			key = byte(len(keys) - 1) // each rotation adds a data key and a generation of the hash key
		}
		n, err := v.db.CountSealedByOthers(v.Context(), c, key)
		if err != nil {
			v.Fatal(err)
		}
		if all += n; c.String() == "access_codes.pin_sealed" {
			pins = n
		}
	}
	return pins, all, keys
}

// hold locks a row until letGo is called.
func (v *vault) hold(code string) (letGo func()) {
	v.Helper()
	conn, err := pgx.Connect(v.Context(), v.database) // not from the pool, which ends idle transactions
	if err == nil {
		_, err = conn.Exec(v.Context(), "begin")
	}
	if err == nil {
		_, err = conn.Exec(v.Context(), "select from access_codes where access_code_id = $1 for no key update", code)
	}
	if err != nil {
		v.Fatal(err)
	}
	letGo = func() { conn.Close(context.WithoutCancel(v.Context())) }
	v.Cleanup(letGo)
	return letGo
}

// rotation is a running rotate-encryption command.
type rotation struct {
	*exec.Cmd
	out, errs bytes.Buffer
	ended     chan struct{}
}

func (v *vault) rotate() *rotation {
	v.Helper()
	r := &rotation{Cmd: v.command("keys", "rotate-encryption"), ended: make(chan struct{})}
	r.Stdout, r.Stderr = &r.out, &r.errs
	if err := r.Start(); err != nil {
		v.Fatal(err)
	}
	go func() { _ = r.Wait(); close(r.ended) }()
	return r
}

const (
	goingOn  = "Resuming an unfinished rotation."
	waitsFor = "Waiting for "
)

var progressLine = regexp.MustCompile(`^(\w+\.\w+) +(\d+) of (\d+)$`)

// progress parses the output of a finished rotation: by column, the total of its first pass and how much of it was
// done.
func (v *vault) progress(r *rotation) (resumed bool, done, total map[string]int) {
	v.Helper()
	done, total = map[string]int{}, map[string]int{}
	before := ""
	for line := range strings.Lines(r.errs.String()) {
		line = strings.TrimSuffix(line, "\n")
		m := progressLine.FindStringSubmatch(line)
		switch {
		case line == goingOn && before == "":
			resumed = true
		case m != nil && line == before:
			v.Errorf("it says again: %s", line)
		case m != nil:
			if there, known := total[m[1]]; !known || done[m[1]] < there {
				done[m[1]], _ = strconv.Atoi(m[2])
				total[m[1]], _ = strconv.Atoi(m[3])
			}
		case !strings.HasPrefix(line, waitsFor):
			v.Errorf("it says: %s", line)
		}
		before = line
	}
	for _, k := range v.all {
		if strings.Contains(r.out.String()+r.errs.String(), k.secret) {
			v.Errorf("the output contains the answer to %s %s", k.path, k.question)
		}
	}
	return resumed, done, total
}

// A killed rotation is resumed by the next one, even while the database still runs the last statement of the killed
// one. The server can read every secret at any time.
func TestRotateEncryption_KilledAndResumed(t *testing.T) {
	t.Parallel()
	const pins = "access_codes.pin_sealed"
	v := newVault(t)
	codes := v.fill(500, 50)
	v.askAll()

	letGo := v.hold(codes[len(codes)-1]) // in the last batch
	killed := v.rotate()
	v.meanwhile(waiting(1))
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-killed.ended
	left, _, keys := v.left()
	if left == 0 || left >= int64(len(codes)) || len(keys) != 2 || keys[1].ResealedAt != nil {
		t.Fatalf(
			"killed in the middle, but %d of %d PINs are left, and the keys are %+v",
			left,
			len(codes),
			states(keys),
		)
	}
	t.Logf("killed with %d of %d PINs left", left, len(codes))
	resumed, done, total := v.progress(killed)
	if resumed || killed.out.Len() > 0 || total[pins] < len(codes) || done[pins] == 0 || done[pins] == total[pins] ||
		done["webhooks.secret_sealed"] != total["webhooks.secret_sealed"] {
		t.Errorf("the killed one has said %s%s", &killed.out, &killed.errs)
	}

	// The database notices that the client is gone. Until then, no other rotation can start.
	v.meanwhile(
		"not exists (select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where " +
			"datname = current_database()) and (classid::bigint << 32 | objid::bigint) = hashtextextended('data_keys', 0))",
	)
	again := v.rotate()
	v.meanwhile(waiting(2)) // for the row, and for the last batch of the killed rotation
	letGo()
	v.until("the rotation ends", func() bool {
		v.ask()
		select {
		case <-again.ended:
			return true
		default:
			return false
		}
	})
	resumed, done, total = v.progress(again) // the server may have re-encrypted more in the meantime
	if !resumed || total[pins] < int(left) || total[pins] >= len(codes) || done[pins] < total[pins] ||
		total["webhooks.secret_sealed"] > 0 {
		t.Errorf("with %d PINs left, the next rotation printed %s", left, &again.errs)
	}
	if ended := regexp.MustCompile(
		`^Done: re-encrypted \d+ secrets with a new key\.\n$`,
	); !again.ProcessState.Success() ||
		!ended.Match(again.out.Bytes()) {
		t.Errorf("it ends with %v: %s", again.ProcessState, &again.out)
	}

	_, all, after := v.left()
	if all != 0 {
		t.Errorf("%d are sealed with another key", all)
	}
	if len(after) != 2 || after[0].IsCurrent || after[0].RetiredAt == nil || !after[1].IsCurrent ||
		after[1].ResealedAt == nil ||
		after[1].KeyID != keys[1].KeyID {
		t.Errorf("the keys are %+v, were %+v", states(after), states(keys))
	}
	v.askAll()
}

// states returns data keys without their key material.
func states(keys []dbsqlc.DataKey) []dbsqlc.DataKey {
	for i := range keys {
		keys[i].Wrapped = nil
	}
	return keys
}
