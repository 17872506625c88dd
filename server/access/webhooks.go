package access

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Webhook is an endpoint that events are sent to.
type Webhook struct {
	ID         uuid.UUID
	URL        string
	EventTypes []string // "*" stands for all
	Secret     string   // whsec_ and base64, as Standard Webhooks describe
}

const (
	secretBytes  = 24 // Standard Webhooks: 24 to 64
	maxURLLength = 2048
)

func secretPlace(id uuid.UUID) string { return "webhooks.secret/" + id.String() }

// CreateWebhook makes a webhook; no event types stand for all.
// It fails with Invalid for a URL or an event type that is none.
func (s *Service) CreateWebhook(ctx context.Context, p Principal, address string, types []string) (Webhook, error) {
	if err := checkWebhookURL(address); err != nil {
		return Webhook{}, err
	}
	if types == nil {
		types = []string{"*"}
	}
	types, err := checkEventTypes(types)
	if err != nil {
		return Webhook{}, err
	}
	key := make([]byte, secretBytes)
	rand.Read(key)
	w := Webhook{ID: newID(), URL: address, EventTypes: types, Secret: "whsec_" + base64.StdEncoding.EncodeToString(key)}
	err = s.db.InsertWebhook(ctx, store.InsertWebhookParams{WebhookID: w.ID, WorkspaceID: p.WorkspaceID, Url: w.URL, EventTypes: w.EventTypes,
		SecretSealed: s.keys.Seal(secretPlace(w.ID), []byte(w.Secret))})
	if err != nil {
		return Webhook{}, fmt.Errorf("create the webhook: %w", err)
	}
	return w, nil
}

func checkWebhookURL(address string) error {
	if len(address) > maxURLLength {
		return invalid("url", "A webhook's URL has at most %d characters", maxURLLength)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || strings.ContainsFunc(address, unicode.IsSpace):
		return invalid("url", "Invalid url")
	case (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return invalid("url", "A webhook's URL begins with https:// or http:// and a host")
	case u.User != nil:
		return invalid("url", "A webhook's URL carries no user name or password; deliveries are signed with the webhook's secret")
	}
	return nil
}

// checkEventTypes takes doubles out and keeps the order.
func checkEventTypes(types []string) ([]string, error) {
	if len(types) == 0 {
		return nil, invalid("event_types", "Name at least one event type, or \"*\" for all")
	}
	out := make([]string, 0, len(types))
	var unknown []string
	for _, t := range types {
		switch {
		case t != "*" && !isEventType(t):
			unknown = append(unknown, t)
		case !slices.Contains(out, t):
			out = append(out, t)
		}
	}
	if unknown != nil {
		return nil, &Error{Kind: Invalid, Type: "invalid_event_types", Data: map[string]any{"invalid_event_types": unknown},
			Message: fmt.Sprintf("No such event type: %s. \"*\" stands for all; the documentation lists the others.", strings.Join(unknown, ", "))}
	}
	return out, nil
}

func (s *Service) toWebhook(r store.Webhook) (Webhook, error) {
	secret, err := s.keys.Open(secretPlace(r.WebhookID), r.SecretSealed)
	if err != nil {
		return Webhook{}, fmt.Errorf("open the secret of webhook %s: %w", r.WebhookID, err)
	}
	return Webhook{ID: r.WebhookID, URL: r.Url, EventTypes: r.EventTypes, Secret: string(secret)}, nil
}

func webhookNotFound(id string) *Error {
	return &Error{Kind: NotFound, Type: "webhook_not_found", Message: "Could not find a webhook with this webhook_id.", Data: map[string]any{"webhook_id": id}}
}

// GetWebhook reads a webhook. It fails with NotFound.
func (s *Service) GetWebhook(ctx context.Context, p Principal, id string) (Webhook, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return Webhook{}, webhookNotFound(id)
	}
	r, err := s.db.GetWebhook(ctx, store.GetWebhookParams{WorkspaceID: p.WorkspaceID, WebhookID: parsed})
	if store.IsNoRows(err) {
		return Webhook{}, webhookNotFound(id)
	}
	if err != nil {
		return Webhook{}, fmt.Errorf("read the webhook: %w", err)
	}
	return s.toWebhook(r)
}

// ListWebhooks lists all webhooks, oldest first.
func (s *Service) ListWebhooks(ctx context.Context, p Principal) ([]Webhook, error) {
	rows, err := s.db.ListWebhooks(ctx, p.WorkspaceID)
	if err != nil {
		return nil, fmt.Errorf("list the webhooks: %w", err)
	}
	out := make([]Webhook, len(rows))
	for i, r := range rows {
		if out[i], err = s.toWebhook(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// UpdateWebhook changes the event types that a webhook receives. It fails with Invalid and NotFound.
func (s *Service) UpdateWebhook(ctx context.Context, p Principal, id string, types []string) error {
	types, err := checkEventTypes(types)
	if err != nil {
		return err
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return webhookNotFound(id)
	}
	n, err := s.db.UpdateWebhook(ctx, store.UpdateWebhookParams{WorkspaceID: p.WorkspaceID, WebhookID: parsed, EventTypes: types})
	if err != nil {
		return fmt.Errorf("update the webhook: %w", err)
	}
	if n == 0 {
		return webhookNotFound(id)
	}
	return nil
}

// DeleteWebhook ends a webhook. It fails with NotFound.
func (s *Service) DeleteWebhook(ctx context.Context, p Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return webhookNotFound(id)
	}
	n, err := s.db.DeleteWebhook(ctx, store.DeleteWebhookParams{WorkspaceID: p.WorkspaceID, WebhookID: parsed})
	if err != nil {
		return fmt.Errorf("delete the webhook: %w", err)
	}
	if n == 0 {
		return webhookNotFound(id)
	}
	return nil
}
