package provider

import (
	"maps"
	"net/http"
)

// connectWebviews are the operations on pages where a person logs in.
func (f *fake) connectWebviews() map[string]fakeHandler {
	one := func(do func(id string) map[string]any) fakeHandler {
		return func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			id, _ := body["connect_webview_id"].(string)
			if f.webviews[id] == nil {
				answerError(http.StatusNotFound, "connect_webview_not_found", "Could not find the page")(w, r)
				return
			}
			answer(do(id))(w, r)
		}
	}
	return map[string]fakeHandler{
		"/connect_webviews/create": func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			id := f.newID()
			f.webviews[id] = map[string]any{
				"connect_webview_id":    id,
				"url":                   f.URL + "/connect/" + id,
				"status":                "pending",
				"login_successful":      false,
				"created_at":            "2026-01-02T03:04:05.678Z",
				"workspace_id":          fakeWorkspace,
				"accepted_providers":    []any{},
				"accepted_capabilities": []any{},
				"custom_metadata":       map[string]any{},
			}
			maps.Copy(f.webviews[id], body)
			answer(map[string]any{"connect_webview": f.webviews[id]})(w, r)
		},
		"/connect_webviews/get": one(func(id string) map[string]any {
			return map[string]any{"connect_webview": f.webviews[id]}
		}),
		"/connect_webviews/delete": one(func(id string) map[string]any {
			delete(f.webviews, id)
			return map[string]any{}
		}),
	}
}
