package abuse

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// prepare makes those who misbehave known to the server; they behave until they are told otherwise.
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
			if err := b.roam(ctx); err != nil {
				return err
			}
		case "houses":
			if err := b.inhabit(ctx); err != nil {
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

// begin has all attacks of a scenario begin.
func (b *bed) begin(ctx context.Context, s scenario) (note string, err error) {
	var notes []string
	for _, name := range s.attacks {
		said, err := b.attacker.begin(name)
		if err != nil {
			return "", err
		}
		if said != "" {
			notes = append(notes, said)
		}
		if err := b.provoke(ctx, name); err != nil {
			return "", err
		}
		if err := b.met(ctx, name); err != nil {
			return "", err
		}
	}
	return strings.Join(notes, "; "), nil
}

// rest waits until the server has little to do, or for as long as an attack: what it is left with would be counted to its next turn.
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

// elsewhere measures the healthy client while another server on this machine has the attack, with attackers and a database of
// its own: what that takes of the machine, the client's own server cannot help. The other's customer does nothing, so that
// its endpoints are told only of what the attackers do; by themselves they have nothing to answer. Out of its turn that
// server is stopped: what an attack leaves it to do would be added to the next.
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
	b.healthy.figures() // while they begin
	f, _ = b.healthy.window(ctx, b.Window)
	if _, err = n.attacker.cease(); err == nil {
		n.rest(ctx)
	}
	return f, errors.Join(err, n.server.alive())
}

// quiet waits until what came before is over.
func (b *bed) quiet(ctx context.Context) {
	b.healthy.figures()
	for end := time.Now().Add(patience); ; {
		f, _ := b.healthy.window(ctx, b.Window/2)
		if b.usual == 0 || f.P50 < 2*b.usual || time.Now().After(end) {
			return
		}
	}
}
