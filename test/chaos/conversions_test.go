package chaos_test

import (
	"context"
	"net/http"
)

func (g *guests) adopt(ctx context.Context, device, name string) {
	free, ok := g.ask(ctx, "/access_codes/generate_code", map[string]any{"device_id": device})
	if !ok || free.status != http.StatusOK {
		return
	}
	pin := free.text("generated_code", "code")
	g.byHand[device+pin] = true // also if the vendor's response was lost and the repetition said that the PIN is in use
	a, ok := g.ask(
		ctx,
		"/access_codes/simulate/create_unmanaged_access_code",
		map[string]any{"device_id": device, "name": name, "code": pin},
	)
	if !ok || a.status != http.StatusOK {
		return
	}
	id := a.text("access_code", "access_code_id")
	c := &owned{
		id:      id,
		device:  device,
		name:    name,
		pin:     pin,
		adopted: true,
	}
	g.codes[id] = c
	a, ok = g.ask(ctx, "/access_codes/unmanaged/convert_to_managed", map[string]any{"access_code_id": id})
	if ok && a.status == http.StatusOK {
		g.did["convert"]++
		c.converting = a.text("action_attempt", "action_attempt_id")
		g.tries = append(g.tries, c.converting)
	}
}

// learn asks how the conversion of a code has ended, by its attempt.
func (g *guests) learn(ctx context.Context, c *owned) (status string) {
	if c.converting == "" {
		return "error"
	}
	a, _ := g.ask(ctx, "/action_attempts/get", map[string]any{"action_attempt_id": c.converting})
	status = a.text("action_attempt", "status")
	g.concludes(c, status)
	return status
}

// concludes records the result of the conversion of a code. After success, the server manages the code. Another slot
// with an earlier PIN of the code has no owner then.
func (g *guests) concludes(c *owned, status string) {
	if status == "success" && !c.converted {
		c.converted = true
		delete(g.byHand, c.device+c.pin)
	}
}

// judgeConversions treats codes whose conversion succeeded as managed, even if no guest has asked, and checks the
// events of each.
func (s *storm) judgeConversions(complain func(string, ...any)) {
	s.Helper()
	converted, deleted := s.tales(
		"access_code.unmanaged.converted_to_managed",
		"access_code_id",
	), s.tales(
		"access_code.deleted",
		"access_code_id",
	)
	for _, g := range s.guests {
		for owner, codes := range map[int]map[string]*owned{0: g.codes, 1: g.deleted} {
			for id, c := range codes {
				if !c.adopted {
					continue
				}
				g.concludes(c, g.outcomes[c.converting])
				if c.converted && (converted[id] != 1 || deleted[id] != owner) {
					complain(
						"converted code %s has %d conversion events, and %d deletion events instead of %d",
						id,
						converted[id],
						deleted[id],
						owner,
					)
				}
			}
		}
	}
}
