package console

import (
	"cmp"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func (h *handler) searchRoutes() []route { return []route{page("/search", h.search)} }

// hitKind describes a kind of search results.
type hitKind struct {
	title string
	path  string // of a resource, without its identifier
}

// hitKinds are the kinds of results, in the order of the page.
var hitKinds = []struct {
	kind string
	hitKind
}{
	{"lock", hitKind{"Locks", "/locks/"}},
	{overview.HitCode, hitKind{"Codes", "/codes/"}},
	{overview.HitIdentity, hitKind{"People", "/people/"}},
	{overview.HitUser, hitKind{"Users of access systems", "/people/users/"}},
	{overview.HitAccount, hitKind{"Accounts", "/accounts/"}},
	{"thermostat", hitKind{"Thermostats", "/thermostats/"}},
	{"noise_detection", hitKind{"Noise sensors", "/noise-sensors/"}},
	{overview.HitKey, hitKind{"API keys", ""}},
}

// hitGroup are results of a kind.
type hitGroup struct {
	hitKind
	hits []overview.Hit
}

// url returns the page of a result; empty: it has none.
func (g hitGroup) url(rq *request, hit overview.Hit) string {
	if g.path == "" {
		return Path + "/access"
	}
	return rq.url(g.path + hit.ID.String())
}

// minSearch is the least number of characters of a search, so that it finds a few results.
const minSearch = 2

func (h *handler) search(rq *request) error {
	text := rq.query("q")
	if id, err := uuid.Parse(text); err == nil {
		return h.findID(rq, id)
	}
	var groups []hitGroup
	if utf8.RuneCountInString(text) >= minSearch {
		hits, err := h.Access.Overview.Search(rq.r.Context(), rq.workspace.ID, text)
		if err != nil {
			return err
		}
		if len(text) == 4 && rq.may("admin") {
			keys, err := h.Access.Overview.SearchKeys(rq.r.Context(), rq.workspace.ID, text)
			if err != nil {
				return err
			}
			hits = append(hits, keys...)
		}
		groups = groupHits(hits)
	}
	return rq.show(searchPage(rq, text, groups))
}

func groupHits(hits []overview.Hit) (groups []hitGroup) {
	for _, k := range hitKinds {
		g := hitGroup{hitKind: k.hitKind}
		for _, hit := range hits {
			if hit.Kind == k.kind {
				g.hits = append(g.hits, hit)
			}
		}
		if g.hits != nil {
			groups = append(groups, g)
		}
	}
	return groups
}

// findID leads to the page of an identifier. One that names nothing can be that of a request, which the activity has.
func (h *handler) findID(rq *request, id uuid.UUID) error {
	hit, found, err := h.Access.Overview.FindID(rq.r.Context(), rq.workspace.ID, id)
	if err != nil {
		return err
	}
	if !found {
		return rq.done(rq.url("/activity", "request", id.String()), "")
	}
	return rq.done(rq.hitURL(hit), "")
}

// hitURL returns the page of a resource.
func (rq *request) hitURL(hit overview.Hit) string {
	id := hit.ID.String()
	switch hit.Kind {
	case overview.HitUnmanagedCode:
		return rq.url("/locks/" + id + "/unmanaged")
	case overview.HitSystem:
		return rq.url("/people/users", "system", id)
	case overview.HitGroup:
		return rq.url("/people/groups/" + id)
	case overview.HitWebhook:
		return rq.url("/webhooks/" + id)
	case overview.HitEvent, overview.HitAttempt, overview.HitRemoved:
		return rq.url("/activity", "subject", id)
	}
	for _, k := range hitKinds {
		if k.kind == hit.Kind && k.path != "" {
			return rq.url(k.path + id)
		}
	}
	return Path + "/access"
}

// hitName is the name of a result for people.
func hitName(hit overview.Hit) string { return cmp.Or(hit.Name, short(hit.ID.String())) }
