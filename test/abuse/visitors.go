package abuse

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

const visitorCount = 2

// visitors fills the disk with a publishable key, which is public: sessions, webviews with metadata, and stored answers.
func visitors(f *attackerProcess) string {
	var large strings.Builder
	for n := range 49 {
		fmt.Fprintf(&large, `"%d":"%s",`, n, strings.Repeat("a", 490))
	}
	webviews := []string{
		`{"custom_metadata":{` + large.String() + `"z":true}}`,
		`{"custom_metadata":{"a":"` + strings.Repeat("a", 400) + `"}}`,
		`{"custom_redirect_url":"https://example.com/` + strings.Repeat("a", 2000) + `"}`,
	}
	f.loop(8, pace, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		in := bufio.NewReader(c)
		visitor := fmt.Sprintf(`{"user_identifier_key":"visitor %d"}`, n%visitorCount)
		var made struct {
			Session struct{ Token string } `json:"client_session"`
		}
		if !f.visit(c, in, "/client_sessions/get_or_create", "Seam-Publishable-Key: "+f.Public, visitor, &made) {
			return
		}
		for i := 0; f.rest(f.ctx, pace); i++ {
			if f.visit(
				c,
				in,
				"/connect_webviews/create",
				"Authorization: Bearer "+made.Session.Token,
				webviews[i%len(webviews)],
				nil,
			) {
				f.hits.Add(1)
			}
			f.visit(c, in, "/client_sessions/get_or_create", "Seam-Publishable-Key: "+f.Public, visitor, nil)
		}
	})
	return ""
}

// visit sends a request with a new Idempotency-Key, and reports whether it succeeds.
func (f *attackerProcess) visit(c net.Conn, in *bufio.Reader, path, credential, body string, out any) bool {
	if _, err := fmt.Fprintf(
		c,
		"POST %s HTTP/1.1\r\nHost: %s\r\n%s\r\nIdempotency-Key: %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s",
		path,
		f.host(),
		credential,
		uuid.NewString(),
		len(body),
		body,
	); err != nil {
		return false
	}
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return false
	}
	return out == nil || json.Unmarshal(got, out) == nil
}

// createPublicKey gives the attackers a publishable key.
func (b *bed) createPublicKey(ctx context.Context) error {
	if b.target.Public != "" {
		return nil
	}
	admin, err := b.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close(ctx) //nolint:errcheck // the work is done
	if b.target.Public, _, err = admin.Access.Auth.IssueCredential(ctx, auth.NewCredential{
		Kind:         domain.PublishableKey,
		WorkspaceIDs: []uuid.UUID{uuid.MustParse(b.server.ready.Workspace)},
	}); err != nil {
		return fmt.Errorf("create a publishable key for the attackers: %w", err)
	}
	return b.attacker.setTarget(b.target)
}

// stored reads what visitors have stored.
func (b *bed) stored(ctx context.Context) (s Stored, err error) {
	db, err := pgx.Connect(ctx, b.DSN)
	if err != nil {
		return s, err
	}
	defer db.Close(ctx) //nolint:errcheck // read only
	const answers = "select answer_sealed from idempotency_keys join client_sessions on client_session_id = credential_id " +
		"union all select answer_sealed from idempotency_keys join credentials using (credential_id) where kind = 'publishable_key'"
	err = db.QueryRow(ctx, `select
		(select coalesce(max(n), 0) from (select count(*) as n from client_session_webviews group by client_session_id) w),
		(select coalesce(max(octet_length(custom_metadata::text)), 0) from connect_webviews join client_session_webviews using (connect_webview_id)),
		(select count(*) from (`+answers+`) k), (select coalesce(max(octet_length(answer_sealed)), 0) from (`+answers+`) k),
		(select count(*) from audit_log where actor_kind in ('publishable_key', 'client_session'))`).
		Scan(&s.Webviews, &s.Bytes, &s.Keys, &s.Answer, &s.Entries)
	if err != nil {
		return s, fmt.Errorf("read what visitors have stored: %w", err)
	}
	return s, nil
}
