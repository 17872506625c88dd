package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
)

// Operation is the type of the generated methods of Client.
type Operation[Request any] = func(context.Context, Request, ...RequestEditorFn) (*http.Response, error)

// Call runs a generated operation and decodes its response:
//
// \tanswer, err := api.Call[api.WebhookResponse](ctx, client.GetWebhook, api.WebhookRequest{WebhookID: id})
//
// It returns a *ResponseError if the server rejects the request or the response violates the contract.
func Call[Answer, Request any](ctx context.Context, operation Operation[Request], request Request) (*Answer, error) {
	resp, err := operation(ctx, request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK || !isJSON(resp) {
		return nil, responseError(resp, body)
	}
	answer := new(Answer)
	if err := json.Unmarshal(body, answer); err != nil {
		return nil, &ResponseError{
			Status: resp.StatusCode,
			Message: redactRequest(
				resp.Request,
				fmt.Sprintf("the server's answer is not what the contract says: %v", err),
			),
			RequestID: resp.Header.Get("seam-request-id"),
		}
	}
	if name := missingList(answer, body); name != "" {
		return nil, &ResponseError{
			Status:    resp.StatusCode,
			Message:   fmt.Sprintf("the server's answer has no %q, so it is not what the contract says", name),
			RequestID: resp.Header.Get("seam-request-id"),
		}
	}
	return answer, nil
}

// missingList returns the name of a required list that the response lacks. Callers would take the missing records for
// deleted. A list that is null counts as empty.
func missingList(answer any, body []byte) string {
	fields := reflect.ValueOf(answer).Elem()
	if fields.Kind() != reflect.Struct {
		return ""
	}
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Kind() != reflect.Slice || !field.IsNil() {
			continue
		}
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		var present map[string]json.RawMessage
		if json.Unmarshal(body, &present) != nil || present[name] == nil {
			return name
		}
	}
	return ""
}
