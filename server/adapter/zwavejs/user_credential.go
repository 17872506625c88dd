package zwavejs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The command class User Credential of newer locks has users with names, and credentials of several types that belong
// to them. The adapter uses endpoint.access_control, which servers support from schema 48 on. A code is a PIN
// credential; a new one gets its own user with the same number.

const credentialPIN = 1 // zwave-js UserCredentialType.PINCode

// tooOld reports whether the gateway's server is too old for the lock's codes.
func (s *session) tooOld(n *node) bool { return n.hasUsers() && s.schema < accessControlSchema }

// capabilities reads the limits of a lock with users from the gateway, once.
func (a *Adapter) capabilities(ctx context.Context, s *session, n *node) error {
	was := n.traits.Load()
	if !n.hasUsers() || was.asked || !was.ready || s.tooOld(n) {
		return nil
	}
	var users struct {
		Capabilities struct {
			MaxUsers          int `json:"maxUsers"`
			MaxUserNameLength int `json:"maxUserNameLength"`
		} `json:"capabilities"`
	}
	var credentials struct {
		Capabilities struct {
			Types map[string]struct {
				Slots    int `json:"numberOfCredentialSlots"`
				Shortest int `json:"minCredentialLength"`
				Longest  int `json:"maxCredentialLength"`
			} `json:"supportedCredentialTypes"`
		} `json:"capabilities"`
	}
	if err := a.accessControl(ctx, s, n, gatewayTimeout, "get_user_capabilities_cached", nil, &users); err != nil {
		return err
	}
	if err := a.accessControl(ctx, s, n, gatewayTimeout, "get_credential_capabilities_cached", nil,
		&credentials); err != nil {
		return err
	}
	t := *was
	pin := credentials.Capabilities.Types["1"]
	t.asked = true
	// otherwise the gateway does not know them yet
	if slots := min(pin.Slots, users.Capabilities.MaxUsers, maxSlots); slots > 0 {
		t.nameMax = min(max(users.Capabilities.MaxUserNameLength, 0), maxTextSize/2)
		t.slots, t.shortest, t.longest = slots, pin.Shortest, pin.Longest
	}
	n.traits.CompareAndSwap(was, &t) // fails after a concurrent interview
	return nil
}

func (a *Adapter) accessControl(ctx context.Context, s *session, n *node, within time.Duration, command string,
	arguments args, out any,
) error {
	all := args{"nodeId": n.id, "endpoint": 0}
	for k, v := range arguments {
		all[k] = v
	}
	return a.callNode(ctx, s, within, "endpoint.access_control."+command, all, out)
}

type wireCredential struct {
	UserID int             `json:"userId"`
	Type   int             `json:"type"`
	Slot   int             `json:"slot"`
	Data   json.RawMessage `json:"data"` // a string or bytes
}

// wireUser is the owner of credentials. The lock denies access to inactive users.
type wireUser struct {
	UserID int    `json:"userId"`
	Name   string `json:"userName"`
	Active *bool  `json:"active"`
}

func (u wireUser) disabled() bool { return u.Active != nil && !*u.Active }

func (c wireCredential) entry(u wireUser) entry {
	e := entry{user: c.UserID, name: brief(u.Name, maxTextSize), disabled: u.disabled()}
	e.pin, _ = pinIn(c.Data) // bytes count as hidden
	return e
}

// handleUser processes that a user was added, changed, or deleted with its credentials.
func (a *Adapter) handleUser(n *node, e *wireEvent) {
	var u wireUser
	if !n.hasUsers() || json.Unmarshal(e.Args, &u) != nil {
		return
	}
	there, disabled := e.Name != "user deleted", u.disabled()
	if !there {
		a.handleDeletion(n, u.UserID == 0)
	}
	c := change{occupied: &there}
	if u.Active != nil {
		c.disabled = &disabled
	}
	var news []int
	a.mu.Lock()
	n.codes.noteUser(u.UserID, there)
	for _, slot := range n.codes.occupied() {
		if c.slot = slot; n.codes.slots[slot].user == u.UserID && n.codes.applyChange(c) {
			news = append(news, slot)
		}
	}
	a.mu.Unlock()
	for _, slot := range news {
		a.hints.Send(adapter.Event{Kind: adapter.CodesChanged, Device: n.ref, Code: codeRef(slot)})
	}
}

// handleDeletion processes a deletion, possibly of many items. A list that is being read may have ended at the deleted
// item, because the lock names the next item before the gateway reads it.
func (a *Adapter) handleDeletion(n *node, many bool) {
	a.mu.Lock()
	if many || n.codes.reading[0] {
		n.codes.markAllUncertain()
	}
	a.mu.Unlock()
	if many {
		a.hints.Send(adapter.Event{Kind: adapter.CodesChanged, Device: n.ref})
	}
}

// readUsers reads all users and credentials from the lock. A known code that is missing in the lists is read once
// more.
func (a *Adapter) readUsers(ctx context.Context, s *session, n *node) error {
	users, err := readComplete[struct {
		Users adapter.List[wireUser] `json:"users"`
	}](ctx, a, s, n, readAllTimeout, "get_users", nil)
	if err != nil {
		return err
	}
	credentials, err := a.credentials(ctx, s, n, "get_all_credentials", nil)
	if err != nil {
		return err
	}
	byID, found, others := map[int]wireUser{}, map[int]entry{}, map[int]bool{}
	for _, u := range users.Users {
		byID[u.UserID] = u
	}
	for _, c := range credentials {
		switch {
		case c.Type != credentialPIN || !slotIn(c.Slot):
			others[c.UserID] = true
		case c.UserID > 0:
			found[c.Slot] = c.entry(byID[c.UserID])
		}
	}
	a.mu.Lock()
	known := n.codes.occupied()
	a.mu.Unlock()
	for _, slot := range known {
		if _, ok := found[slot]; ok {
			continue
		}
		if err := a.readCredential(ctx, s, n, slot); err != nil {
			return err
		}
	}
	for slot, e := range found {
		a.storeSlot(n, slot, e, true)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for user := range byID {
		n.codes.noteUser(user, true)
	}
	for user := range others {
		n.codes.noteOtherUser(user)
	}
	return nil
}

// credentials reads the credentials that a command lists.
func (a *Adapter) credentials(ctx context.Context, s *session, n *node, command string,
	which args,
) ([]wireCredential, error) {
	got, err := readComplete[struct {
		Credentials adapter.List[wireCredential] `json:"credentials"`
	}](ctx, a, s, n, readAllTimeout, command, which)
	return got.Credentials, err
}

// readCredential reads one PIN from the lock.
func (a *Adapter) readCredential(ctx context.Context, s *session, n *node, slot int) error {
	got, err := readComplete[struct {
		Credential *wireCredential `json:"credential"`
	}](ctx, a, s, n, radioTimeout, "get_credential", args{"credentialType": credentialPIN, "credentialSlot": slot})
	if err != nil {
		return err
	}
	if got.Credential == nil || got.Credential.UserID == 0 { // some locks return a credential without a user
		a.storeSlot(n, slot, entry{}, false)
		return nil
	}
	var user struct {
		User wireUser `json:"user"`
	}
	if err := a.accessControl(ctx, s, n, gatewayTimeout, "get_user_cached", args{"userId": got.Credential.UserID},
		&user); err != nil {
		return err
	}
	a.storeSlot(n, slot, got.Credential.entry(user.User), true)
	return nil
}
