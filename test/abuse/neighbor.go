package abuse

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// prepare creates the misbehaving parts, which behave well until the attack starts.
func (b *bed) prepare(ctx context.Context, s scenario) error {
	if b.neighbor != nil {
		b.neighbor.server.thaw()
		defer b.neighbor.server.freeze()
		if err := b.neighbor.prepare(ctx, s); err != nil {
			return err
		}
	}
	for _, name := range s.attacks {
		switch name {
		case "device-clouds", "gateways", "access-clouds", "known-pushes":
			if err := b.connect(ctx); err != nil {
				return err
			}
		case "workspaces":
			if err := b.createToken(ctx); err != nil {
				return err
			}
		case "visitors":
			if err := b.createPublicKey(ctx); err != nil {
				return err
			}
		case "houses":
			if err := b.createHouses(ctx); err != nil {
				return err
			}
		case "endpoints":
			if err := b.subscribe(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts all attacks of a scenario.
func (b *bed) begin(ctx context.Context, s scenario) (note string, err error) {
	var notes []string
	for _, name := range s.attacks {
		said, err := b.attacker.start(name)
		if err != nil {
			return "", err
		}
		if said != "" {
			notes = append(notes, said)
		}
		if err := b.provoke(ctx, name); err != nil {
			return "", err
		}
		if err := b.awaitHits(ctx, name); err != nil {
			return "", err
		}
	}
	return strings.Join(notes, "; "), nil
}

// rest waits until the server is nearly idle, or for the duration of an attack. Otherwise its remaining work would
// count for its next turn.
func (b *bed) rest(ctx context.Context) {
	const look = time.Second / 2
	for end := time.Now().Add(max(b.Window, 20*time.Second)); time.Now().Before(end) && ctx.Err() == nil; {
		before := b.server.processor()
		b.pause(ctx, look)
		if b.server.processor()-before < look/20 {
			return
		}
	}
}

// elsewhere measures the healthy client while the neighbor on this machine is attacked, with its own attackers and
// database. The client's server cannot avoid that part of the delay. The neighbor's healthy client is idle, so its
// endpoints receive only events that the attackers cause. The neighbor is suspended otherwise, because its remaining
// work would count for the next turn.
func (b *bed) elsewhere(ctx context.Context, s scenario) (f Figures, err error) {
	n := b.neighbor
	if slices.Equal(s.attacks, []string{"endpoints"}) {
		return f, nil
	}
	n.server.thaw()
	defer n.server.freeze()
	if _, err := n.begin(ctx, s); err != nil {
		return f, err
	}
	b.healthy.figures() // while the attacks start
	f, _ = b.healthy.window(ctx, b.Window)
	if _, err = n.attacker.stop(); err == nil {
		n.rest(ctx)
	}
	return f, errors.Join(err, n.server.alive())
}

// awaitCalm waits until the effects of the last attack are over.
func (b *bed) awaitCalm(ctx context.Context) {
	b.healthy.figures()
	for end := time.Now().Add(waitTimeout); ; {
		f, _ := b.healthy.window(ctx, b.Window/2)
		if b.baseline == 0 || f.P50 < 2*b.baseline || time.Now().After(end) {
			return
		}
	}
}
