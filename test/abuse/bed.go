package abuse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
)

// bed is the server, its attackers, and its healthy client.
type bed struct {
	Options
	server     *server
	healthy    *healthy
	attacker   *attackers
	target     Target // the attackers' target
	mu         sync.Mutex
	accounts   []string // connected_account_id of the hostile accounts
	clouds     bool     // hostile accounts are connected
	subscribed bool     // hostile endpoints exist
	// median duration of healthy requests in the calm
	baseline time.Duration
	stop     func()
	// neighbor is attacked instead of this server, to measure what the attackers take of the machine; nil disables
	// this.
	neighbor *bed
}

func open(ctx context.Context, o Options) (_ *bed, err error) {
	b, err := startBed(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Neighbor != "" {
		o.DSN, o.Dir = o.Neighbor, filepath.Join(o.Dir, "neighbor")
		if err = os.Mkdir(
			o.Dir,
			0o755,
		); err == nil { //nolint:gosec // nothing of it is secret but the master key, which is made 0600
			b.neighbor, err = startBed(ctx, o)
		}
		if err != nil {
			b.close()
			return nil, err
		}
	}
	b.stop = b.healthy.begin(ctx)
	if b.Compare {
		b.pause(ctx, 2*time.Second) // warm up
	}
	b.healthy.figures()
	return b, nil
}

// startBed starts a server, its attackers, and its healthy client, all idle.
func startBed(ctx context.Context, o Options) (_ *bed, err error) {
	b := &bed{Options: o}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.Log == nil {
		b.Log = new(bytes.Buffer)
	}
	if b.attacker, err = startAttackers(ctx, b.Compare); err != nil {
		return nil, err
	}
	if b.server, err = startServer(ctx, b.Options); err != nil {
		return nil, err
	}
	r := b.server.ready
	if err := b.fill(ctx); err != nil {
		return nil, err
	}
	if b.healthy, err = newHealthy(ctx, r.URL, r.APIKey, b.Compare); err != nil {
		return nil, err
	}
	b.target = Target{URL: r.URL, Key: r.APIKey, Device: b.healthy.device}
	if err := b.attacker.setTarget(b.target); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *bed) close() {
	if b.neighbor != nil {
		b.neighbor.close()
	}
	if b.stop != nil {
		b.stop()
	}
	if b.healthy != nil {
		b.healthy.endpoint.Close() //nolint:errcheck // nothing is lost
		b.healthy.client.CloseIdleConnections()
	}
	if b.attacker != nil {
		b.attacker.close()
	}
	if b.server != nil {
		b.server.kill()
	}
}

// fill inserts events, so that lists are long.
func (b *bed) fill(ctx context.Context) error {
	db, err := pgx.Connect(ctx, b.DSN)
	if err != nil {
		return err
	}
	defer db.Close(ctx) //nolint:errcheck // read only from here
	_, err = db.Exec(ctx, `insert into events (event_id, workspace_id, event_type, payload, fanned_out_at, created_at)
		select gen_random_uuid(), $1, 'device.connected', jsonb_build_object('device_id', gen_random_uuid(), 'note', repeat('x', 4000)), now(), now() - n * interval '1 second'
		from generate_series(1, 1000) n`, b.server.ready.Workspace)
	if err != nil {
		return fmt.Errorf("fill the list of events: %w", err)
	}
	return nil
}

func (b *bed) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// measure measures the calm, the attack on the neighbor if there is one, and the attack.
func (b *bed) measure(ctx context.Context, s scenario) (row Row, err error) {
	row.Name = s.name
	if err := b.prepare(ctx, s); err != nil {
		return row, err
	}
	if err := b.calm(ctx, &row); err != nil {
		return row, err
	}
	if b.neighbor != nil {
		if row.Elsewhere, err = b.elsewhere(ctx, s); err != nil {
			return row, fmt.Errorf("elsewhere: %w", err)
		}
		b.awaitCalm(ctx)
		b.healthy.figures()
	}
	b.server.resetPeak()
	if row.Note, err = b.begin(ctx, s); err != nil {
		return row, err
	}
	before, worked := b.healthy.figures() // while the attacks start
	begin, used := time.Now(), b.server.processor()
	row.Under, row.Worked = b.healthy.window(ctx, s.lasts(b.Window))
	if err := b.connected(ctx); err != nil {
		return row, err
	}
	row.Processor = (b.server.processor() - used).Seconds() / time.Since(begin).Seconds()
	row.Worked += worked
	row.Under.OK += before.OK
	row.Under.Failed += before.Failed
	row.Under.Failures = append(row.Under.Failures, before.Failures...)
	if row.Reach, err = b.attacker.stop(); err != nil {
		return row, err
	}
	if row.Stored, err = b.stored(ctx); err != nil {
		return row, err
	}
	if row.Peak, err = b.server.peak(); err != nil {
		return row, errors.Join(err, b.server.alive())
	}
	return row, errors.Join(ctx.Err(), b.server.alive())
}

// calm measures healthy requests without attack, after the effects of the last attack.
func (b *bed) calm(ctx context.Context, row *Row) error {
	if !b.Compare {
		return nil
	}
	b.awaitCalm(ctx)
	row.Calm, _ = b.healthy.window(ctx, b.Window)
	if b.baseline == 0 {
		b.baseline = row.Calm.P50
	}
	return ctx.Err()
}

func (b *bed) admin(ctx context.Context) (*app.Admin, error) {
	return app.OpenAdmin(
		ctx,
		app.Database{DatabaseURL: b.DSN, DataDir: filepath.Join(b.Dir, "data")},
		slog.New(slog.DiscardHandler),
	)
}

// createToken gives the attackers an unused personal access token.
func (b *bed) createToken(ctx context.Context) error {
	admin, err := b.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close(ctx) //nolint:errcheck // the work is done
	if b.target.Roamer, err = b.token(ctx, admin); err != nil {
		return err
	}
	return b.attacker.setTarget(b.target)
}

// token creates a personal access token for the attackers.
func (b *bed) token(ctx context.Context, admin *app.Admin) (string, error) {
	token, _, err := admin.Access.Auth.IssueCredential(
		ctx,
		auth.NewCredential{Kind: domain.PAT, WorkspaceIDs: []uuid.UUID{uuid.MustParse(b.server.ready.Workspace)}},
	)
	if err != nil {
		return "", fmt.Errorf("create a token for the attackers: %w", err)
	}
	return token, nil
}

// connect creates accounts at the hostile clouds and gateways, which behave well until vendors starts.
func (b *bed) connect(ctx context.Context) error {
	if b.clouds {
		return nil
	}
	b.clouds = true
	admin, err := b.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close(ctx) //nolint:errcheck // what was done is done
	workspace := uuid.MustParse(b.server.ready.Workspace)
	at := b.attacker.at
	var all []adapter.Connection
	for _, how := range misbehaviours {
		all = append(
			all,
			&devicecloud.Connection{BaseURL: at.Cloud + "/locks-of/" + how.name, Token: "t"},
			&accesscloud.Connection{BaseURL: at.Cloud + "/doors-of/" + how.name, Token: "t"},
		)
	}
	for _, how := range floods {
		all = append(
			all,
			&zwavejs.Connection{
				Config: zwavejs.Config{URL: strings.Replace(at.Cloud, "http:", "ws:", 1) + "/gateway/" + how},
			},
		)
		all = append(
			all,
			&zigbee2mqtt.Connection{Config: zigbee2mqtt.Config{Broker: "mqtt://" + at.Broker, Topic: how}},
		)
		all = append(
			all,
			&zigbee2mqtt.Connection{
				Config: zigbee2mqtt.Config{
					Broker: strings.Replace(at.Cloud, "http:", "ws:", 1) + "/mqtt/" + how,
					Topic:  how,
				},
			},
		)
	}
	return parallel(len(all), func(n int) error {
		id, err := admin.Connect(ctx, workspace, "hostile", all[n])
		if err != nil {
			return fmt.Errorf("connect %s: %w", all[n].Address(), err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.accounts = append(b.accounts, id.String())
		return nil
	})
}

// subscribe creates the hostile endpoints, which behave well until vendors starts. The cost of well-behaved endpoints
// is part of the calm.
func (b *bed) subscribe(ctx context.Context) error {
	if b.subscribed {
		return nil
	}
	b.subscribed = true
	err := parallel(b.Endpoints, func(n int) error {
		url := fmt.Sprintf("%s/endpoint/%s/%d", b.attacker.at.Cloud, misbehaviours[n%len(misbehaviours)].name, n)
		return post(
			ctx,
			b.healthy.client,
			b.server.ready.URL+"/webhooks/create",
			b.server.ready.APIKey,
			map[string]any{"url": url},
			nil,
		)
	})
	if b.Compare {
		b.pause(ctx, 2*time.Second) // until all is warm
	}
	b.baseline = 0
	return err
}

// awaitHits waits until the server has contacted many misbehaving parts, or created its maximum of workspaces.
func (b *bed) awaitHits(ctx context.Context, name string) error {
	if name == "endpoints" && b.stop == nil {
		return nil // there are no events for them
	}
	wanted := map[string]int{
		"device-clouds": len(misbehaviours),
		"access-clouds": len(misbehaviours),
		"gateways":      2 * len(floods),
		"endpoints":     b.Endpoints,
		"houses":        b.Endpoints,
		"workspaces":    ratelimit.WorkspacesPerMinute,
		"visitors":      2 * visitorCount * auth.MaxSessionWebviews,
	}[name]
	return until(ctx, "the server speaks to "+name, func() (bool, error) {
		hits, err := b.attacker.hits()
		return hits >= wanted, err
	})
}

// connected waits until the attackers have opened their connections, if there is room for them.
func (b *bed) connected(ctx context.Context) error {
	return until(ctx, "the attackers connect", func() (bool, error) {
		r, err := b.attacker.reach()
		return 10*r.Made >= 9*r.Wanted || r.Room < r.Wanted, err
	})
}

// parallel calls one n times, some concurrently, and returns the first error.
func parallel(n int, one func(int) error) error {
	const atOnce = 8
	var all sync.WaitGroup
	failed := make(chan error, atOnce)
	for worker := range atOnce {
		all.Go(func() {
			for i := worker; i < n; i += atOnce {
				if err := one(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// provoke makes the server contact the hostile accounts immediately instead of over time.
func (b *bed) provoke(ctx context.Context, name string) error {
	switch name {
	case "device-clouds", "gateways", "access-clouds":
		db, err := pgx.Connect(ctx, b.DSN)
		if err != nil {
			return err
		}
		defer db.Close(ctx) //nolint:errcheck // what was done is done
		_, err = db.Exec(
			ctx,
			"update connected_accounts set wake_seq = wake_seq + 1, due_at = now() where connected_account_id = "+
				"any($1)",
			b.accounts,
		)
		return err
	}
	return nil
}

// Main runs the attackers and exits, in a process that startAttackers has started. Programs and tests that call Run
// must call Main first.
func Main() {
	if os.Getenv(attackerVariable) != "" {
		attack()
		os.Exit(0)
	}
}
