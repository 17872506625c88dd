package zwavejs

import (
	"context"
	"unicode/utf16"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Results of writes: zwave-js SetCredentialResult; the values below 3 are also SetUserResult.
const (
	resultOK             = 0
	resultOccupied       = 1 // addition of an existing item: the gateway's copy is outdated
	resultEmpty          = 2 // modification of a missing item: likewise
	resultDuplicate      = 3
	resultSecurityRules  = 4
	resultDuplicateAdmin = 5
)

// setCredential writes a PIN. It creates the user first if necessary, and deletes a new user whose PIN was rejected.
// It fails with errTaken when another user has the number.
func (a *Adapter) setCredential(ctx context.Context, s *session, n *node, slot int, wanted entry,
	occupied bool,
) (refused bool, err error) {
	user := a.createUser
	if occupied {
		user = a.setUser
	}
	if err := user(ctx, s, n, wanted); err != nil {
		return false, err
	}
	result, err := a.sendCredential(ctx, s, n, slot, wanted)
	if err != nil || result == resultOK {
		return false, err
	}
	if !occupied {
		ctx := context.WithoutCancel(ctx)
		_, more, err := a.holds(ctx, s, n, wanted.user, slot)
		if err == nil && !more {
			err = a.deleteUser(ctx, s, n, wanted.user)
		}
		if err != nil {
			return false, err
		}
	}
	switch result {
	case resultDuplicate, resultDuplicateAdmin:
		e := adapter.Errorf(adapter.Duplicate, "the PIN is already on the lock")
		e.Conflict = a.conflict(n, 0, wanted.pin)
		return false, e
	case resultSecurityRules:
		return false, adapter.Errorf(adapter.Invalid, "the lock's security rules reject this PIN")
	}
	return true, nil
}

// truncateName truncates a name to the size that the lock stores: non-ASCII characters take two or four bytes.
func truncateName(name string, most int) string {
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

// errTaken means that another user has the number of the user to create.
var errTaken = adapter.Errorf(adapter.Transient, "another user was just enrolled under the number of the code")

// userArgs returns the arguments of a user command.
func (n *node) userArgs(wanted entry) args {
	options := map[string]any{"active": true}
	if n.traits.Load().nameMax > 0 {
		options["userName"] = wanted.name
	}
	return args{"userId": wanted.user, "options": options}
}

// addUser creates a user. The lock rejects it if the number is in use.
func (a *Adapter) addUser(ctx context.Context, s *session, n *node, user args) (result int, err error) {
	var added struct {
		Result struct {
			User int `json:"user"`
		} `json:"result"`
	}
	err = a.accessControl(ctx, s, n, radioTimeout, "add_user", user, &added)
	return added.Result.User, err
}

// createUser creates the user of a new code. The lock itself detects a user with that number. Such a user is left
// unchanged, with errTaken, unless an earlier attempt of this adapter created it.
func (a *Adapter) createUser(ctx context.Context, s *session, n *node, wanted entry) error {
	a.mu.Lock()
	tried := n.codes.noteCreation(wanted.user)
	a.mu.Unlock()
	result, err := a.addUser(ctx, s, n, n.userArgs(wanted))
	if err != nil {
		return err
	}
	if result == resultOccupied && tried {
		_, more, err := a.holds(ctx, s, n, wanted.user, 0)
		if err != nil {
			return err
		}
		if !more {
			return a.setUser(ctx, s, n, wanted)
		}
	}
	if result == resultOccupied {
		a.mu.Lock()
		n.codes.forgetKey(wanted.user)
		n.codes.noteOtherUser(wanted.user)
		a.mu.Unlock()
		return errTaken
	}
	return userError(result)
}

// userError returns the error of a write of a user.
func userError(result int) error {
	if result != resultOK {
		return adapter.Errorf(adapter.Unconfirmed, "the lock has not accepted the user of the code (result %d)", result)
	}
	return nil
}

// setUser updates a user, or creates it again. The gateway decides by its copy, which may be outdated.
func (a *Adapter) setUser(ctx context.Context, s *session, n *node, wanted entry) error {
	user := n.userArgs(wanted)
	var set struct {
		Result int `json:"result"`
	}
	err := a.accessControl(ctx, s, n, radioTimeout, "set_user", user, &set)
	switch {
	case err != nil:
		return err
	case set.Result == resultEmpty:
		if set.Result, err = a.addUser(ctx, s, n, user); err != nil {
			return err
		}
	case set.Result == resultOccupied:
		if err := a.accessControl(ctx, s, n, radioTimeout, "get_user", user, nil); err != nil {
			return err
		}
		if err := a.accessControl(ctx, s, n, radioTimeout, "set_user", user, &set); err != nil {
			return err
		}
	}
	return userError(set.Result)
}

// sendCredential writes the PIN, and repeats the write if the gateway's copy was outdated.
func (a *Adapter) sendCredential(ctx context.Context, s *session, n *node, slot int,
	wanted entry,
) (result int, err error) {
	which := args{"userId": wanted.user, "credentialType": credentialPIN, "credentialSlot": slot, "data": wanted.pin}
	for try := range 2 {
		var set struct {
			Result int `json:"result"`
		}
		if err := a.accessControl(ctx, s, n, radioTimeout, "set_credential", which, &set); err != nil {
			return 0, err
		}
		result = set.Result
		if try > 0 || result != resultOccupied && result != resultEmpty {
			break
		}
		if err := a.accessControl(ctx, s, n, radioTimeout, "get_credential", which, nil); err != nil {
			return 0, err
		}
	}
	return result, nil
}

// removeCredential deletes a PIN, and its user if it has no other credential.
func (a *Adapter) removeCredential(ctx context.Context, s *session, n *node, slot int, e entry) error {
	pin, more, err := a.holds(ctx, s, n, e.user, slot)
	switch {
	case err != nil:
		return asRead(err)
	case pin && !more:
		return a.deleteUser(ctx, s, n, e.user)
	}
	which := args{"userId": e.user, "credentialType": credentialPIN, "credentialSlot": slot}
	return a.accessControl(ctx, s, n, radioTimeout, "delete_credential", which, nil)
}

// holds reports whether a user has the PIN in a slot, and whether it has other credentials. It reads the lock,
// because a card may have just been enrolled.
func (a *Adapter) holds(ctx context.Context, s *session, n *node, user, slot int) (pin, more bool, err error) {
	held, err := a.credentials(ctx, s, n, "get_credentials", args{"userId": user})
	for _, c := range held {
		switch {
		case c.UserID != user: // some locks continue with the next user
		case c.Type == credentialPIN && c.Slot == slot:
			pin = true
		default:
			more = true
		}
	}
	if more {
		a.mu.Lock()
		n.codes.noteOtherUser(user)
		a.mu.Unlock()
	}
	return pin, more, err
}

// deleteUser deletes a user with its credentials.
func (a *Adapter) deleteUser(ctx context.Context, s *session, n *node, user int) error {
	var deleted struct {
		Result int `json:"result"`
	}
	err := a.accessControl(ctx, s, n, radioTimeout, "delete_user", args{"userId": user}, &deleted)
	if err == nil && deleted.Result == resultOK {
		a.mu.Lock()
		n.codes.noteUser(user, false)
		a.mu.Unlock()
	}
	return err
}
