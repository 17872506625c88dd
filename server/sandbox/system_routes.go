package sandbox

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
)

// accessRoutes registers the contract of access systems, which the package comment lists.
func accessRoutes(r chi.Router) {
	r.Get("/systems", listSystems)
	r.Get("/systems/{system}", onSystem(false, getSystem))
	r.Post("/systems/{system}/users", onSystem(true, putUser))
	r.Put("/systems/{system}/users/{user}", onSystem(true, putUser))
	r.Delete("/systems/{system}/users/{user}", onSystem(true, deleteUser))
	r.Delete("/systems/{system}/groups/{group}", onSystem(true, deleteKnownGroup))
	r.Post("/systems/{system}/entrances/{entrance}/unlock", onSystem(true, unlockEntrance))
}

// accessControls registers the controls of access systems, below /sandbox/systems/{system}.
func accessControls(r chi.Router) {
	r.Get("/memory", systemControl(readSystem))
	r.Post("/online", systemControl(setSystem(func(m *systemMemory) { m.Online = true })))
	r.Post("/offline", systemControl(setSystem(func(m *systemMemory) { m.Online = false })))
	r.Post("/remove", systemControl(setSystem(func(m *systemMemory) { m.Removed = true })))
	r.Post("/users", systemControl(putUser))
	r.Put("/users/{user}", systemControl(putUser))
	r.Delete("/users/{user}", systemControl(deleteUser))
	r.Delete("/groups/{group}", systemControl(deleteGroup))
	r.Delete("/entrances/{entrance}", systemControl(deleteEntrance))
	r.Post("/entrances/{entrance}/enter", systemControl(enterEntrance))
	r.Get("/faults", systemControl(func(_ *http.Request, y *system) (any, *problem) {
		y.mu.Lock()
		defer y.mu.Unlock()
		return y.faults, nil
	}))
	r.Put("/faults", systemControl(putSystemFaults))
}

// onSystem resolves the system in the path, and applies its response time and faults.
func onSystem(write bool, handle systemHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		y := accountOf(r).system(chi.URLParam(r, "system"))
		if y == nil {
			answerProblem(w, refuse(systemNotFound, "The account has no such access system."))
			return
		}
		wait, f := y.drawFault(write)
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
			return // the client is gone, and nothing was executed
		}
		if f.problem == nil && !y.isOnline() {
			f.problem = refuse(systemOffline, "The access system is offline.")
		}
		if f.problem != nil {
			answerProblem(w, f.problem)
			return
		}
		v, p := handle(r, y)
		if f.abort {
			panic(http.ErrAbortHandler)
		}
		respond(w, v, p)
	}
}

// systemControl is onSystem for actions at the system itself, without faults.
func systemControl(handle systemHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		y := accountOf(r).system(chi.URLParam(r, "system"))
		if y == nil {
			answerProblem(w, refuse(systemNotFound, "The account has no such access system."))
			return
		}
		v, p := handle(r, y)
		respond(w, v, p)
	}
}

func (y *system) isOnline() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.mem.Online
}

func listSystems(w http.ResponseWriter, r *http.Request) {
	shown := []object{}
	for _, y := range accountOf(r).allSystems() {
		y.mu.Lock()
		if !y.mem.Removed {
			shown = append(shown, object{
				"system_id": y.mem.SystemID,
				"name":      y.mem.Name,
				"time_zone": y.mem.TimeZone,
				"online":    y.mem.Online,
			})
		}
		y.mu.Unlock()
	}
	answer(w, http.StatusOK, object{"systems": shown})
}

type object = map[string]any

// getSystem returns the content of a system.
func getSystem(_ *http.Request, y *system) (any, *problem) {
	y.mu.Lock()
	defer y.mu.Unlock()
	m := y.mem.clone()
	return object{
		"system_id": m.SystemID,
		"name":      m.Name,
		"time_zone": m.TimeZone,
		"online":    m.Online,
		"users":     nonNil(m.Users),
		"entrances": nonNil(m.Entrances),
		"groups":    nonNil(m.Groups),
	}, nil
}

func readSystem(_ *http.Request, y *system) (any, *problem) {
	y.mu.Lock()
	defer y.mu.Unlock()
	m := y.mem.clone()
	m.Users, m.Entrances, m.Groups = nonNil(m.Users), nonNil(m.Entrances), nonNil(m.Groups)
	return m, nil
}

// nonNil replaces a nil list by one that is [] in JSON.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func putUser(r *http.Request, y *system) (any, *problem) {
	var asked systemUser
	if p := read(r, &asked); p != nil {
		return nil, p
	}
	asked.ID = chi.URLParam(r, "user")
	if len(asked.ExternalID) > customIDLimit {
		return nil, refuse(invalidRequest, "external_id has at most %d characters.", customIDLimit)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	limit := y.mem.MaxUsers
	if y.faults.MaxUsers != nil {
		limit = *y.faults.MaxUsers
	}
	var made systemUser
	p := y.commit(func(m *systemMemory) (p *problem) {
		made, p = m.put(asked, limit)
		return p
	})
	return made, p
}

func deleteUser(r *http.Request, y *system) (any, *problem) {
	id := chi.URLParam(r, "user")
	y.mu.Lock()
	defer y.mu.Unlock()
	return done, y.commit(func(m *systemMemory) *problem {
		i := slices.IndexFunc(m.Users, func(p systemUser) bool { return p.ID == id })
		if i < 0 {
			return refuse(userNotFound, "The system has no such user.")
		}
		m.Users = slices.Delete(m.Users, i, i+1)
		return nil
	})
}

func setSystem(set func(*systemMemory)) systemHandler {
	return func(_ *http.Request, y *system) (any, *problem) {
		y.mu.Lock()
		defer y.mu.Unlock()
		return done, y.commit(func(m *systemMemory) *problem { set(m); return nil })
	}
}

// deleteKnownGroup is deleteGroup through the API, which reports an unknown group.
func deleteKnownGroup(r *http.Request, y *system) (any, *problem) {
	y.mu.Lock()
	known := slices.ContainsFunc(y.mem.Groups, func(g group) bool { return g.ID == chi.URLParam(r, "group") })
	refused := y.faults.RefuseGroupDeletions
	y.mu.Unlock()
	switch {
	case !known:
		return nil, refuse(groupNotFound, "The system has no such group.")
	case refused:
		return nil, refuse(notSupported, "The system does not let programs delete groups.")
	}
	return deleteGroup(r, y)
}

// unlockEntrance unlocks an entrance once.
func unlockEntrance(r *http.Request, y *system) (any, *problem) {
	id := chi.URLParam(r, "entrance")
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.faults.RefuseUnlocks {
		return nil, refuse(unlockRefused, "The entrance is blocked at the system.")
	}
	return done, y.commit(func(m *systemMemory) *problem {
		i := slices.IndexFunc(m.Entrances, func(e entrance) bool { return e.ID == id })
		if i < 0 {
			return refuse(entranceNotFound, "The system has no such entrance.")
		}
		m.Entrances[i].Unlocks++
		return nil
	})
}

// deleteGroup deletes a group and its memberships.
func deleteGroup(r *http.Request, y *system) (any, *problem) {
	id := chi.URLParam(r, "group")
	return setSystem(func(m *systemMemory) {
		m.Groups = slices.DeleteFunc(m.Groups, func(g group) bool { return g.ID == id })
		for i, p := range m.Users {
			m.Users[i].GroupIDs = slices.DeleteFunc(slices.Clone(p.GroupIDs), func(g string) bool { return g == id })
		}
	})(r, y)
}

// deleteEntrance deletes an entrance, and removes it from groups and users.
func deleteEntrance(r *http.Request, y *system) (any, *problem) {
	id := chi.URLParam(r, "entrance")
	return setSystem(func(m *systemMemory) {
		m.Entrances = slices.DeleteFunc(m.Entrances, func(e entrance) bool { return e.ID == id })
		for i, g := range m.Groups {
			m.Groups[i].EntranceIDs = slices.DeleteFunc(slices.Clone(g.EntranceIDs),
				func(e string) bool { return e == id })
		}
		for i, p := range m.Users {
			m.Users[i].EntranceIDs = slices.DeleteFunc(slices.Clone(p.EntranceIDs),
				func(e string) bool { return e == id })
		}
	})(r, y)
}

func enterEntrance(r *http.Request, y *system) (any, *problem) {
	var req struct {
		UserID string `json:"user_id"`
	}
	if p := read(r, &req); p != nil {
		return nil, p
	}
	opened, reason := y.enter(chi.URLParam(r, "entrance"), req.UserID)
	return object{"opened": opened, "reason": reason}, nil
}

func putSystemFaults(r *http.Request, y *system) (any, *problem) {
	var f SystemFaults
	if p := read(r, &f); p != nil {
		return nil, p
	}
	if p := f.check(); p != nil {
		return nil, p
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.faults = f
	return f, nil
}
