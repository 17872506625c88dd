package zwavejs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// household is a lock of the script with named users, as shown by zwave-js 15.29: four users, and as many PINs.
type household struct {
	mu    sync.Mutex
	users map[int]string // names
	held  map[credential]holding
	// whether the lock's response is lost: to "user 1", "credential 1/1"
	lost     func(question string) bool
	timeouts int                                    // number of lost responses
	first    func(s *script, command string) string // handles a command first, and may respond to it
}

// credential is identified by its type and its slot.
type credential struct{ kind, slot int }

type holding struct {
	user int
	data string
}

const (
	pinKind, cardKind = 1, 3

	residentPIN = "135790"
	access      = "endpoint.access_control."
	userEvent   = `{"type":"event","event":{"source":"node","event":%q,"nodeId":2,"endpointIndex":0,"args":%s}}`
)

// newHousehold has a resident with a PIN in slot 1.
func newHousehold() *household {
	return &household{
		users: map[int]string{1: "Resident"},
		held:  map[credential]holding{{pinKind, 1}: {1, residentPIN}},
	}
}

// enroll adds a card of a user.
func (h *household) enroll(user int, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users[user] = name
	h.held[credential{cardKind, 1}] = holding{user, "card"}
}

// lives requires that the lock has exactly these users with these credentials.
func (h *household) lives(t *testing.T, users map[int]string, held map[credential]int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	owners := map[credential]int{}
	for c, holding := range h.held {
		owners[c] = holding.user
	}
	if !maps.Equal(h.users, users) || !maps.Equal(owners, held) {
		t.Fatalf("the lock has users %v with %v", h.users, owners)
	}
}

// answer returns the response of zwave-js. A lost response of the lock ends the lists, as if there were no more
// items.
func (h *household) answer(s *script, c command) string {
	what := strings.TrimPrefix(c.Name, access)
	if h.first != nil {
		if result := h.first(s, what); result != "" {
			return result
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at := credential{c.Kind, c.Credential}
	switch what {
	case listen:
		return `{"state":{"nodes":[{"nodeId":2,"status":4,"ready":true,"manufacturerId":297,"productType":1,"productId":2,"label":"YRD256","deviceConfig":{"manufacturer":"Yale"},
			"endpoints":[{"index":0,"commandClasses":[{"id":98,"version":4},{"id":131,"version":1},{"id":113,"version":8}]}],"values":[]}]}}`
	case "get_user_capabilities_cached":
		return `{"capabilities":{"maxUsers":4,"maxUserNameLength":32}}`
	case "get_credential_capabilities_cached":
		return `{"capabilities":{"supportedCredentialTypes":{"1":{"numberOfCredentialSlots":4,"minCredentialLength":4,"maxCredentialLength":10}}}}`
	case "node.get_state":
		return fmt.Sprintf(`{"state":{"nodeId":2,"statistics":{"commandsTX":7,"timeoutResponse":%d}}}`, h.timeouts)
	case "endpoint.invoke_cc_api":
		// reports a response without its content
		return `{"response":{"nodeId":2,"ccId":"User Credential","ccCommand":"0x06"}}`
	case "get_users":
		return h.listUsers()
	case "get_all_credentials", "get_credentials":
		return h.listCredentials(c.User)
	case "get_credential":
		if h.silent(at.question()) {
			return noContent
		}
		return `{"credential":` + h.shown(at) + `}` // a credential without a user if there is none
	case "get_user", "get_user_cached":
		return `{"user":` + h.user(c.User) + `}`
	}
	return h.write(what, c, at)
}

// noteWrite returns the response to a command that changes the lock.
func (h *household) write(what string, c command, at credential) string {
	_, there := h.users[c.User]
	switch what {
	case "add_user":
		if there {
			return `{"result":{"user":1}}`
		}
		h.users[c.User] = c.Options.Name
		return `{"result":{"user":0}}`
	case "set_user":
		h.users[c.User] = c.Options.Name
	case "set_credential":
		for other, holding := range h.held {
			if other != at && holding.data == c.Data {
				return `{"result":3}`
			}
		}
		h.held[at] = holding{c.User, c.Data}
	case "delete_user":
		delete(h.users, c.User)
		maps.DeleteFunc(h.held, func(_ credential, held holding) bool { return held.user == c.User })
	case "delete_credential":
		delete(h.held, at)
	}
	return `{"result":0}`
}

func (h *household) silent(question string) bool {
	if h.lost == nil || !h.lost(question) {
		return false
	}
	h.timeouts++
	return true
}

func (h *household) listUsers() string {
	users := []string{}
	for _, id := range slices.Sorted(maps.Keys(h.users)) {
		if h.silent(fmt.Sprintf("user %d", id)) {
			break
		}
		users = append(users, h.user(id))
	}
	return `{"users":[` + strings.Join(users, ",") + `]}`
}

// listCredentials lists the credentials of a user, or of all.
func (h *household) listCredentials(user int) string {
	credentials := []string{}
	inOrder := func(a, b credential) int { return a.kind*100 + a.slot - b.kind*100 - b.slot }
	for _, c := range slices.SortedFunc(maps.Keys(h.held), inOrder) {
		if user != 0 && h.held[c].user != user {
			continue
		}
		if h.silent(c.question()) {
			break
		}
		credentials = append(credentials, h.shown(c))
	}
	return `{"credentials":[` + strings.Join(credentials, ",") + `]}`
}

func (h *household) user(id int) string {
	if _, there := h.users[id]; !there {
		return "null"
	}
	return fmt.Sprintf(`{"userId":%d,"active":true,"userType":0,"userName":%q}`, id, h.users[id])
}

func (h *household) shown(c credential) string {
	data, _ := json.Marshal(h.held[c].data)
	return fmt.Sprintf(`{"userId":%d,"type":%d,"slot":%d,"data":%s}`, h.held[c].user, c.kind, c.slot, data)
}

func (c credential) question() string { return fmt.Sprintf("credential %d/%d", c.kind, c.slot) }

// names returns the names of codes by reference.
func names(codes adapter.Codes) map[adapter.CodeRef]string {
	all := map[adapter.CodeRef]string{}
	for _, c := range codes.Codes {
		all[c.Ref] = c.Name
	}
	return all
}
