package app_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
)

// dump is what a dump of the database contains of keys and of hashes of one secret of four digits.
type dump struct {
	stored encryption.Stored
	hashes map[string][]byte // by column
}

func dumped(t *testing.T, dsn, code string) (d dump) {
	t.Helper()
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	defer conn.Close(context.WithoutCancel(t.Context()))
	data := must(conn.Query(t.Context(), "select key_id, wrapped, is_current from data_keys"))(t)
	d.stored.Data = must(pgx.CollectRows(data, func(r pgx.CollectableRow) (k encryption.DataKey, err error) {
		var id int16
		err = r.Scan(&id, &k.Wrapped, &k.Current)
		k.ID = byte(id)
		return k, err
	}))(t)
	server := must(conn.Query(t.Context(), "select name, sealed from server_keys"))(t)
	d.stored.Server = must(pgx.CollectRows(server, pgx.RowToStructByPos[encryption.ServerKey]))(t)
	d.stored.Now = time.Now()
	var pin, write, request []byte
	if err := conn.QueryRow(t.Context(), `select pin_mac, coalesce(write_pin_mac, pin_mac),
		(select request_mac from idempotency_keys where operation = '/access_codes/create' order by created_at desc limit 1)
		from access_codes where access_code_id = $1`, code).Scan(&pin, &write, &request); err != nil {
		t.Fatal(err)
	}
	request, _ = encryption.SplitMAC(request)
	d.hashes = map[string][]byte{"pin_mac": pin, "write_pin_mac": write, "request_mac": request}
	return d
}

// reveals returns the columns whose hash tells the PIN to a holder of keys.
func (d dump) reveals(
	keys *encryption.Keys,
	scopes map[string]string,
	content func(pin string) string,
) (found []string) {
	for column, hash := range d.hashes {
		for i := range 10_000 {
			pin := fmt.Sprintf("%04d", i)
			plain := pin
			if column == "request_mac" {
				plain = content(pin)
			}
			if keys.Match(hash, keys.MAC(scopes[column], []byte(plain))) {
				found = append(found, column)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// A leak of before a rotation, with the master key, the data key, and the hash key, reveals no PIN of a later dump.
func TestRotateEncryption_LeakOfBeforeRevealsNoPIN(t *testing.T) {
	t.Parallel()
	old, recent := encryption.NewMaster(), encryption.NewMaster()
	text := base64.StdEncoding.EncodeToString
	var dsn string
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.RotationWait = time.Millisecond }),
		func(c *app.Config) { c.MasterKey, dsn = text(old), c.DatabaseURL },
	)
	device := s.Device(t, "august")
	create := func(s *apptest.Server, pin string) string {
		var out struct {
			Code struct {
				ID string `json:"access_code_id"`
			} `json:"access_code"`
		}
		header := apptest.Bearer(s.APIKey)
		header.Set("Idempotency-Key", "of "+pin)
		body := fmt.Sprintf(`{"device_id":%q,"code":%q}`, device, pin)
		if res := s.Send(
			t,
			http.MethodPost,
			"/access_codes/create",
			header,
			body,
			&out,
		); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		return out.Code.ID
	}
	scopes := map[string]string{
		"pin_mac":       "access_codes.pin/device/" + device,
		"write_pin_mac": "access_codes.pin/device/" + device,
		"request_mac":   "idempotency_keys.request//access_codes/create",
	}
	content := func(pin string) string { return fmt.Sprintf(`{"code":%q,"device_id":%q}`, pin, device) }

	before := create(s, "3141")
	leak := dumped(t, dsn, before)
	attacker := must(encryption.New(old))(t)
	if err := attacker.SetSource(t.Context(), func(context.Context) (encryption.Stored, error) {
		return leak.stored, nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := leak.reveals(
		attacker,
		scopes,
		content,
	); !slices.Contains(got, "pin_mac") ||
		!slices.Contains(got, "request_mac") {
		t.Fatalf("the test attacks what it should not: it finds the PIN in %v of the leak", got)
	}

	both := s.StartAnother(t, func(c *app.Config) { c.MasterKey = text(recent) + "," + text(old) })
	if err := both.App.Access.ServerKeys.RotateEncryption(t.Context(), func(keyrotation.Rotation) {}); err != nil {
		t.Fatal(err)
	}
	after := create(both, "2718")
	for name, code := range map[string]string{"before": before, "after": after} {
		later := dumped(t, dsn, code)
		if got := later.reveals(attacker, scopes, content); len(got) > 0 {
			t.Errorf("a code of %s the rotation: the leak reveals the PIN in %v", name, got)
		}
		if err := must(encryption.New(old))(t).SetSource(t.Context(), func(context.Context) (encryption.Stored, error) {
			return later.stored, nil
		}); err == nil || !strings.Contains(err.Error(), "is the master key the one") {
			t.Errorf("the old master key opens the keys of a later dump: %v", err)
		}
	}
	for _, pin := range []string{"3141", "2718"} { // both servers still find what is there
		var got struct {
			Code struct{ Code string } `json:"access_code"`
		}
		if status := both.Post(
			t,
			"/access_codes/get",
			map[string]any{"device_id": device, "code": pin},
			&got,
		); status != http.StatusOK ||
			got.Code.Code != pin {
			t.Errorf("the code with a PIN is not found by it: %d", status)
		}
	}
}

// What the server has handed out before a rotation stays valid after it, while it makes new ones with the new keys.
func TestRotateEncryption_OldLinksWork(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithLocks(3),
		apptest.WithAccess(func(o *access.Options) { o.RotationWait = time.Millisecond }),
	)
	session, _ := s.Credential(t, auth.NewCredential{Kind: domain.ConsoleSession})
	type webview struct {
		Webview struct {
			ID  string `json:"connect_webview_id"`
			URL string `json:"url"`
		} `json:"connect_webview"`
	}
	type page struct {
		Pagination struct {
			Cursor *string `json:"next_page_cursor"`
		}
	}
	var made, again webview
	var first page
	s.Post(t, "/connect_webviews/create", map[string]any{}, &made)
	s.Post(t, "/devices/list", map[string]any{"limit": 1}, &first)
	if made.Webview.URL == "" || first.Pagination.Cursor == nil {
		t.Fatal("there is no link or no cursor")
	}
	if err := s.App.Access.ServerKeys.RotateEncryption(t.Context(), func(keyrotation.Rotation) {}); err != nil {
		t.Fatal(err)
	}
	s.Post(t, "/connect_webviews/get", map[string]any{"connect_webview_id": made.Webview.ID}, &again)
	if again.Webview.URL == made.Webview.URL {
		t.Error("the address of the page comes from the old key")
	}
	for name, address := range map[string]string{"old": made.Webview.URL, "new": again.Webview.URL} {
		path := strings.TrimPrefix(address, s.URL)
		if res := s.Send(t, http.MethodGet, path, nil, "", nil); res.StatusCode != http.StatusOK {
			t.Errorf("the %s address of the page: %s", name, res.Status)
		}
	}
	body := fmt.Sprintf(`{"limit":1,"page_cursor":%q}`, *first.Pagination.Cursor)
	header := apptest.Bearer(session)
	header.Set("Seam-Workspace", s.WorkspaceID)
	if res := s.Send(t, http.MethodPost, "/devices/list", header, body, nil); res.StatusCode != http.StatusOK {
		t.Errorf("an old console session with an old cursor: %s", res.Status)
	}
}
