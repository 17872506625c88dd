package zwavejs

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf16"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The command class User Credential of newer locks: users with names, and credentials of several kinds that
// belong to them. It is spoken through endpoint.access_control, which servers have from schema 48 on. A code is
// a PIN credential; a new one gets a user of its own, of the same number.

const credentialPIN = 1 // zwave-js UserCredentialType.PINCode

// Results of writes: zwave-js SetCredentialResult; those below 3 are SetUserResult too.
const (
	resultOK             = 0
	resultOccupied       = 1 // added, and there was something: the gateway's copy is old
	resultEmpty          = 2 // modified, and there was nothing: likewise
	resultDuplicate      = 3
	resultSecurityRules  = 4
	resultDuplicateAdmin = 5
)

// capabilities asks the gateway for the numbers of a lock with users, once.
func (a *Adapter) capabilities(ctx context.Context, s *session, n *node) error {
	was := n.traits.Load()
	if !n.named() || was.asked || !was.ready || s.schema < unifiedFrom {
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
	if err := a.accessControl(ctx, s, n, askWithin, "get_user_capabilities_cached", nil, &users); err != nil {
		return err
	}
	if err := a.accessControl(ctx, s, n, askWithin, "get_credential_capabilities_cached", nil, &credentials); err != nil {
		return err
	}
	t := *was
	pin := credentials.Capabilities.Types["1"]
	t.asked, t.nameMax = true, min(max(users.Capabilities.MaxUserNameLength, 0), mostText/2)
	t.slots, t.shortest, t.longest = min(pin.Slots, users.Capabilities.MaxUsers, mostSlots), pin.Shortest, pin.Longest
	n.traits.CompareAndSwap(was, &t) // otherwise it was interviewed again just now
	return nil
}

func (a *Adapter) accessControl(ctx context.Context, s *session, n *node, within time.Duration, command string, arguments args, out any) error {
	all := args{"nodeId": n.id, "endpoint": 0}
	for k, v := range arguments {
		all[k] = v
	}
	return a.ask(ctx, s, within, "endpoint.access_control."+command, all, out)
}

type wireCredential struct {
	UserID int             `json:"userId"`
	Type   int             `json:"type"`
	Slot   int             `json:"slot"`
	Data   json.RawMessage `json:"data"` // bytes, where it is no text
}

// wireUser is whom credentials belong to; one that is not active is let in with none of them.
type wireUser struct {
	UserID int    `json:"userId"`
	Name   string `json:"userName"`
	Active *bool  `json:"active"`
}

func (u wireUser) disabled() bool { return u.Active != nil && !*u.Active }

func (c wireCredential) entry(u wireUser) entry {
	e := entry{user: c.UserID, name: brief(u.Name, mostText), disabled: u.disabled()}
	e.pin, _ = pinIn(c.Data) // what is no text is hidden
	return e
}

// userTold takes in whether a user is let in.
func (a *Adapter) userTold(n *node, e *wireEvent) {
	var u wireUser
	if !n.named() || json.Unmarshal(e.Args, &u) != nil || u.Active == nil {
		return
	}
	occupied, disabled := true, u.disabled()
	var news []int
	a.mu.Lock()
	for _, slot := range n.codes.occupied() {
		if n.codes.slots[slot].user == u.UserID && n.codes.hear(change{slot: slot, occupied: &occupied, disabled: &disabled}) {
			news = append(news, slot)
		}
	}
	a.mu.Unlock()
	for _, slot := range news {
		a.hints.Send(adapter.Event{Kind: adapter.CodesChanged, Device: n.ref, Code: codeRef(slot)})
	}
}

// readUsers asks the lock for all users and credentials. What they lack that was there has to be denied by the lock once more.
func (a *Adapter) readUsers(ctx context.Context, s *session, n *node) error {
	users, err := answered[struct {
		Users adapter.List[wireUser] `json:"users"`
	}](ctx, a, s, n, walkWithin, "get_users", nil)
	if err != nil {
		return err
	}
	credentials, err := answered[struct {
		Credentials adapter.List[wireCredential] `json:"credentials"`
	}](ctx, a, s, n, walkWithin, "get_all_credentials", nil)
	if err != nil {
		return err
	}
	byID, others := map[int]wireUser{}, map[int]bool{}
	for _, u := range users.Users {
		byID[u.UserID] = u
		if slotIn(u.UserID) {
			others[u.UserID] = true
		}
	}
	found := map[int]entry{}
	for _, c := range credentials.Credentials {
		if c.Type == credentialPIN && c.UserID > 0 && slotIn(c.Slot) {
			found[c.Slot] = c.entry(byID[c.UserID])
			delete(others, c.UserID)
		}
	}
	for _, c := range credentials.Credentials {
		if (c.Type != credentialPIN || !slotIn(c.Slot)) && slotIn(c.UserID) {
			others[c.UserID] = true
		}
	}
	a.mu.Lock()
	known := n.codes.occupied()
	n.codes.others = others
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
		a.shown(n, slot, e, true)
	}
	return nil
}

// readCredential asks the lock for one PIN.
func (a *Adapter) readCredential(ctx context.Context, s *session, n *node, slot int) error {
	got, err := answered[struct {
		Credential *wireCredential `json:"credential"`
	}](ctx, a, s, n, radioWithin, "get_credential", args{"credentialType": credentialPIN, "credentialSlot": slot})
	if err != nil {
		return err
	}
	if got.Credential == nil || got.Credential.UserID == 0 { // some name a credential of nobody
		a.shown(n, slot, entry{}, false)
		return nil
	}
	var user struct {
		User wireUser `json:"user"`
	}
	if err := a.accessControl(ctx, s, n, askWithin, "get_user_cached", args{"userId": got.Credential.UserID}, &user); err != nil {
		return err
	}
	a.shown(n, slot, got.Credential.entry(user.User), true)
	return nil
}

// setCredential writes a PIN, for a user that is made first where there is none. A user without a PIN is not left
// behind.
func (a *Adapter) setCredential(ctx context.Context, s *session, n *node, slot int, wanted entry, occupied bool) (refused bool, err error) {
	if err := a.setUser(ctx, s, n, wanted); err != nil {
		return false, err
	}
	result, err := a.sendCredential(ctx, s, n, slot, wanted)
	if err != nil || result == resultOK {
		return false, err
	}
	if !occupied {
		if err := a.accessControl(context.WithoutCancel(ctx), s, n, radioWithin, "delete_user", args{"userId": wanted.user}, nil); err != nil {
			return false, err
		}
	}
	switch result {
	case resultDuplicate, resultDuplicateAdmin:
		e := adapter.Errorf(adapter.Duplicate, "the lock has this PIN already")
		e.Conflict = a.conflict(n, 0, wanted.pin)
		return false, e
	case resultSecurityRules:
		return false, adapter.Errorf(adapter.Invalid, "the lock's security rules refuse this PIN")
	}
	return true, nil
}

// fitting is as much of a name as the lock keeps: what is not ASCII takes two bytes, or four.
func fitting(name string, most int) string {
	units := utf16.Encode([]rune(name))
	if each := utf16.Decode(units); len(units) == len(name) { // ASCII
		return string(each[:min(len(each), most)])
	}
	units = units[:min(len(units), most/2)]
	if n := len(units); n > 0 && utf16.IsSurrogate(rune(units[n-1])) && units[n-1] < 0xdc00 {
		units = units[:n-1] // the first half of a character
	}
	return string(utf16.Decode(units))
}

// setUser makes or renames a user. Which of both the gateway decides by its copy, which may be old.
func (a *Adapter) setUser(ctx context.Context, s *session, n *node, wanted entry) error {
	options := map[string]any{"active": true}
	if n.traits.Load().nameMax > 0 {
		options["userName"] = wanted.name
	}
	user := args{"userId": wanted.user, "options": options}
	var set struct {
		Result int `json:"result"`
	}
	err := a.accessControl(ctx, s, n, radioWithin, "set_user", user, &set)
	switch {
	case err != nil:
		return err
	case set.Result == resultEmpty:
		var added struct {
			Result struct {
				User int `json:"user"`
			} `json:"result"`
		}
		if err := a.accessControl(ctx, s, n, radioWithin, "add_user", user, &added); err != nil {
			return err
		}
		set.Result = added.Result.User
	case set.Result == resultOccupied:
		if err := a.accessControl(ctx, s, n, radioWithin, "get_user", user, nil); err != nil {
			return err
		}
		if err := a.accessControl(ctx, s, n, radioWithin, "set_user", user, &set); err != nil {
			return err
		}
	}
	if set.Result != resultOK {
		return adapter.Errorf(adapter.Unconfirmed, "the lock has not taken the user of the code (result %d)", set.Result)
	}
	return nil
}

// sendCredential writes the PIN; once more where the gateway's copy was old.
func (a *Adapter) sendCredential(ctx context.Context, s *session, n *node, slot int, wanted entry) (result int, err error) {
	which := args{"userId": wanted.user, "credentialType": credentialPIN, "credentialSlot": slot, "data": wanted.pin}
	for try := range 2 {
		var set struct {
			Result int `json:"result"`
		}
		if err := a.accessControl(ctx, s, n, radioWithin, "set_credential", which, &set); err != nil {
			return 0, err
		}
		result = set.Result
		if try > 0 || result != resultOccupied && result != resultEmpty {
			break
		}
		if err := a.accessControl(ctx, s, n, radioWithin, "get_credential", which, nil); err != nil {
			return 0, err
		}
	}
	return result, nil
}

// removeCredential takes a PIN away, and its user where that has nothing else.
func (a *Adapter) removeCredential(ctx context.Context, s *session, n *node, slot int, e entry) error {
	a.mu.Lock()
	alone := slotIn(e.user) && !n.codes.others[e.user]
	for other, o := range n.codes.slots {
		alone = alone && (other == slot || o.user != e.user)
	}
	a.mu.Unlock()
	if alone {
		return a.accessControl(ctx, s, n, radioWithin, "delete_user", args{"userId": e.user}, nil)
	}
	which := args{"userId": e.user, "credentialType": credentialPIN, "credentialSlot": slot}
	return a.accessControl(ctx, s, n, radioWithin, "delete_credential", which, nil)
}
