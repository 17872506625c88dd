package provider

import (
	"maps"
	"net/http"
	"slices"
)

// fakeRecords are the records of one kind by their identifier, as the API shows them.
type fakeRecords map[string]map[string]any

// people are the operations on settings of devices, users of access systems, and user identities.
func (f *fake) people() map[string]fakeHandler {
	routes := map[string]fakeHandler{
		"/devices/update":           f.updateDevice,
		"/devices/unmanaged/get":    f.getUnmanagedDevice,
		"/devices/unmanaged/update": f.updateDevice,
	}
	maps.Copy(routes, f.records("/acs/users", "acs_user", "acs_users", f.acsUsers))
	for operation, suspended := range map[string]bool{"suspend": true, "unsuspend": false} {
		routes["/acs/users/"+operation] = func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			body["is_suspended"] = suspended
			routes["/acs/users/update"](w, r, body)
		}
	}
	maps.Copy(routes, f.records("/user_identities", "user_identity", "user_identities", f.identities))
	return routes
}

// records are the operations on records of one kind.
func (f *fake) records(path, name, plural string, records fakeRecords) map[string]fakeHandler {
	key := name + "_id"
	on := func(body map[string]any, do func(record map[string]any) http.HandlerFunc) http.HandlerFunc {
		id, _ := body[key].(string)
		if records[id] == nil {
			return f.answerNotFound(name+"_not_found", "There is no such "+name)
		}
		return do(records[id])
	}
	return map[string]fakeHandler{
		path + "/create": func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			id := f.newID()
			records[id] = map[string]any{
				key:            id,
				"workspace_id": f.workspace,
				"created_at":   "2026-01-02T03:04:05Z",
			}
			maps.Copy(records[id], body)
			answer(map[string]any{name: records[id]})(w, r)
		},
		path + "/get": func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			on(body, func(record map[string]any) http.HandlerFunc {
				return answer(map[string]any{name: record})
			})(w, r)
		},
		path + "/list": func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			all := []map[string]any{}
			for _, id := range slices.Sorted(maps.Keys(records)) {
				all = append(all, records[id])
			}
			f.answerPage(w, r, plural, all, body)
		},
		path + "/update": func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			on(body, func(record map[string]any) http.HandlerFunc {
				maps.Copy(record, body)
				return answer(map[string]any{})
			})(w, r)
		},
		path + "/delete": func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			on(body, func(record map[string]any) http.HandlerFunc {
				delete(records, record[key].(string))
				return answer(map[string]any{})
			})(w, r)
		},
	}
}

func (f *fake) updateDevice(w http.ResponseWriter, r *http.Request, body map[string]any) {
	for _, device := range f.devices {
		if device["device_id"] != body["device_id"] {
			continue
		}
		if name, ok := body["name"]; ok {
			device["display_name"] = name
		}
		answer(map[string]any{})(w, r)
		return
	}
	answerError(http.StatusNotFound, "device_not_found", "Device not found")(w, r)
}

// getUnmanagedDevice knows none: all devices of this server are managed.
func (f *fake) getUnmanagedDevice(w http.ResponseWriter, r *http.Request, _ map[string]any) {
	answerError(http.StatusNotFound, "device_not_found", "Device not found")(w, r)
}
