package chaos_test

import "time"

// lock compares what guests know of a lock's codes with its memory. It counts used slots and codes with errors.
func (s *storm) lock(complain func(string, ...any), g *guests, device string) (slots, reported int) {
	s.Helper()
	codes, memory, keepsEnds := s.codes(g.client, device), s.memory(device), s.places()[device].keepsEnds
	owned := map[string]bool{} // PINs that may be on the lock
	for _, was := range s.found[device] {
		owned[was.pin] = true
	}
	for _, c := range g.codes {
		if c.device == device && c.adopted {
			owned[c.pin] = true
			if n := held(memory, c.pin); len(n) != 1 && !s.saysWhy(codes, c.id) {
				complain("the PIN of code %s, which was on %s before, is there %d times", c.id, device, len(n))
			}
		}
	}
	names := map[string]int{}
	for _, c := range codes {
		id, pin, name, status := c.text("access_code_id"), c.text("code"), c.text("name"), c.text("status")
		names[name]++
		errs, _ := c.body["errors"].([]any)
		at := held(memory, pin)
		switch { // no guest knows the code of this PIN
		case c.managed && !g.knows(id):
			complain("code %s of %s is managed, but no guest has or had it", id, device)
		case c.managed:
			owned[pin] = true
		}
		switch {
		case len(errs) > 0:
			reported++
		case c.managed && status != "set":
			complain("code %s of %s has the status %s, and no error says why", id, device, status)
		case pin != "" && len(at) != 1:
			complain("the PIN of code %s is %d times on %s", id, len(at), device)
		case c.managed && pin != "" && at[0].name != name:
			complain("code %s is called %q on %s, and %q by the API", id, at[0].name, device, name)
		case c.managed && pin != "" && g.codes[id] != nil:
			var want time.Time // on locks without ends, the server deletes the code
			if keepsEnds {
				want = g.codes[id].ends
			}
			if ends := at[0].ends; !ends.Equal(want) {
				complain("code %s ends at %s on %s, but its last acknowledged end is %s", id, ends, device, want)
			} else if !ends.IsZero() {
				g.did[endKept]++
			}
		}
		if (g.deleted[id] != nil || g.ended[id] != nil) && len(errs) == 0 {
			complain("code %s was deleted or has ended, and still exists", id)
		}
	}
	for id, c := range g.deleted {
		if c.device == device && c.removed && g.outcomes[c.removing] != "error" && !owned[c.pin] &&
			!s.saysWhy(codes, id) &&
			len(held(memory, c.pin)) > 0 {
			complain("code %s was deleted without an error, and its PIN is still on %s", id, device)
		}
	}
	for _, m := range memory {
		if !owned[m.pin] && !g.byHand[device+m.pin] {
			complain("a slot of %s has %q, which has no owner", device, m.name)
		}
	}
	if len(memory) > len(codes) {
		complain("%d codes are on %s, and %d have an owner", len(memory), device, len(codes))
	}
	for name, n := range names {
		if g.made[name] > 0 && n > 1 {
			complain("%q was created once and exists %d times", name, n)
		}
	}
	return len(memory), reported
}

// saysWhy reports whether a code is listed with an error.
func (s *storm) saysWhy(codes []listed, id string) bool {
	for _, c := range codes {
		if errs, _ := c.body["errors"].([]any); c.text("access_code_id") == id && len(errs) > 0 {
			return true
		}
	}
	return false
}

// held returns the slots with a PIN.
func held(memory []slot, pin string) (at []slot) {
	for _, m := range memory {
		if m.pin == pin {
			at = append(at, m)
		}
	}
	return at
}
