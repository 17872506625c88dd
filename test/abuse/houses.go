package abuse

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

const (
	houseCount     = 4
	hooksInAll     = 40 // for each of Options.Endpoints
	changeInterval = 2 * time.Second
)

// house is a workspace of the attackers with many webhooks that lead to them. One token has created half of the
// workspaces, and each of the others has its own token, like those of unrelated customers.
type house struct{ Key, Device string }

// createHouses creates the houses. Their endpoints behave well until houses starts. The cost of well-behaved endpoints
// is part of the calm.
func (b *bed) createHouses(ctx context.Context) error {
	if b.target.Houses != nil {
		return nil
	}
	admin, err := b.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close(ctx) //nolint:errcheck // the work is done
	common, err := b.token(ctx, admin)
	if err != nil {
		return err
	}
	all := make([]house, houseCount)
	if err := parallel(len(all), func(n int) (err error) {
		token := common
		if n%2 == 0 {
			if token, err = b.token(ctx, admin); err != nil {
				return err
			}
		}
		all[n], err = b.build(ctx, admin.Access, token)
		return err
	}); err != nil {
		return err
	}
	b.baseline = 0
	b.target.Houses = all
	return b.attacker.setTarget(b.target)
}

// build creates one house.
func (b *bed) build(ctx context.Context, a *access.Services, token string) (h house, err error) {
	url := b.server.ready.URL
	var made struct {
		Workspace struct {
			ID uuid.UUID `json:"workspace_id"`
		} `json:"workspace"`
	}
	if err := post(
		ctx,
		b.healthy.client,
		url+"/workspaces/create",
		token,
		map[string]any{"name": "House", "is_sandbox": true},
		&made,
	); err != nil {
		return h, err
	}
	if h.Key, _, err = a.Auth.IssueCredential(
		ctx,
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{made.Workspace.ID}},
	); err != nil {
		return h, err
	}
	if h.Device, err = lock(ctx, b.healthy.client, url, h.Key); err != nil {
		return h, err
	}
	for n := range hooksInAll * b.Endpoints / houseCount {
		to := fmt.Sprintf("%s/endpoint/never/%s-%d", b.attacker.at.Cloud, h.Device, n)
		if err := post(
			ctx,
			b.healthy.client,
			url+"/webhooks/create",
			h.Key,
			map[string]any{"url": to, "event_types": []string{"access_code.created", "access_code.deleted"}},
			nil,
		); err != nil {
			return h, err
		}
	}
	return h, nil
}

// houses causes events for all webhooks of the houses, which hang.
func houses(f *attackerProcess) string {
	f.misbehaving.Store(true)
	f.loop(len(f.Houses), changeInterval, func(n int) {
		h := f.Houses[n]
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		in := bufio.NewReader(c)
		ask := func(path string, body any, out any) bool {
			b, _ := json.Marshal(body) //nolint:errchkjson // our own type
			if _, err := fmt.Fprintf(
				c,
				"POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: "+
					"application/json\r\nContent-Length: %d\r\n\r\n%s",
				path,
				f.host(),
				h.Key,
				len(b),
				b,
			); err != nil {
				return false
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				return false
			}
			defer res.Body.Close()
			if out != nil && json.NewDecoder(res.Body).Decode(out) != nil {
				return false
			}
			_, err = io.Copy(io.Discard, res.Body)
			return err == nil && res.StatusCode == http.StatusOK
		}
		var made struct {
			Code struct {
				ID string `json:"access_code_id"`
			} `json:"access_code"`
		}
		if ask("/access_codes/create", map[string]any{"device_id": h.Device}, &made) && f.rest(f.ctx, changeInterval) {
			ask("/access_codes/delete", map[string]any{"access_code_id": made.Code.ID}, nil)
		}
	})
	return ""
}
