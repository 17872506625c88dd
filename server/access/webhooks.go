package access

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Webhook is an endpoint that events are sent to.
type Webhook struct {
	ID             uuid.UUID
	URL            string
	EventTypes     []string   // "*" stands for all
	Secret         string     // whsec_ and base64, as Standard Webhooks describe
	DisabledAt     *time.Time // nothing has been sent since; nil: it is enabled
	DisabledReason string
}

const (
	secretBytes  = 24 // Standard Webhooks: 24 to 64
	maxURLLength = 2048
)

func secretPlace(id uuid.UUID) string { return "webhooks.secret/" + id.String() }

func newSecret() string {
	key := make([]byte, secretBytes)
	rand.Read(key)
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// CreateWebhook makes a webhook; no event types stand for all.
// It fails with Invalid for a URL or an event type that is none, and where there are as many as there may be.
func (s *Service) CreateWebhook(ctx context.Context, p Principal, address string, types []string) (Webhook, error) {
	if err := CheckWebhookURL(address); err != nil {
		return Webhook{}, err
	}
	if err := s.checkHost(address); err != nil {
		return Webhook{}, err
	}
	if types == nil {
		types = []string{"*"}
	}
	types, err := checkEventTypes(types)
	if err != nil {
		return Webhook{}, err
	}
	if err := s.roomForWebhook(ctx, p.WorkspaceID); err != nil {
		return Webhook{}, err
	}
	w := Webhook{ID: newID(), URL: address, EventTypes: types, Secret: newSecret()}
	err = s.db.InsertWebhook(ctx, dbsqlc.InsertWebhookParams{WebhookID: w.ID, WorkspaceID: p.WorkspaceID, Url: w.URL, EventTypes: w.EventTypes,
		SecretSealed: s.keys.Seal(secretPlace(w.ID), []byte(w.Secret))})
	if err != nil {
		return Webhook{}, fmt.Errorf("create the webhook: %w", err)
	}
	return w, nil
}

// roomForWebhook fails with Invalid where a workspace has as many webhooks as it may: an event is handed to all of them in one transaction,
// which has to end before the lease does under which it is made. That there is no room is not remembered: one that is deleted makes some.
func (s *Service) roomForWebhook(ctx context.Context, workspace uuid.UUID) error {
	now := s.opt.Now()
	if taken, _ := s.webhooks.take(workspace, now); taken {
		return nil
	}
	n, err := s.db.CountWebhooks(ctx, dbsqlc.CountWebhooksParams{WorkspaceID: workspace, MaxRows: int32(min(s.opt.MostWebhooks, 1<<30))})
	if err != nil {
		return fmt.Errorf("count the webhooks: %w", err)
	}
	left := s.opt.MostWebhooks - int(n)
	if left <= 0 {
		return invalid("", "The workspace has %d webhooks, which is as many as it may. Delete those that nobody needs, with /webhooks/delete", s.opt.MostWebhooks)
	}
	s.webhooks.counted(workspace, left, now)
	return nil
}

// CheckWebhookURL says why events cannot be sent to an address.
func CheckWebhookURL(address string) *Error {
	if len(address) > maxURLLength {
		return invalid("url", "A webhook's URL has at most %d characters", maxURLLength)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || strings.ContainsFunc(address, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		return invalid("url", "Invalid url")
	case (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return invalid("url", "A webhook's URL begins with https:// or http:// and a host")
	case !isPort(u.Port()):
		return invalid("url", "A webhook's URL names no port, or one of 1 to 65535")
	case u.User != nil:
		return invalid("url", "A webhook's URL carries no user name or password; deliveries are signed with the webhook's secret")
	}
	return nil
}

// isPort says whether a URL's port is left out, or one that can be dialled.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || (err == nil && n > 0)
}

// checkHost refuses a host that is an address which nothing is sent to. It is a courtesy: what a name stands for is
// judged when it is dialled.
func (s *Service) checkHost(address string) error {
	u, err := url.Parse(address)
	if err != nil || s.opt.RefusedAddress == nil || !s.refuses(strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))) {
		return nil //nolint:nilerr // CheckWebhookURL has said it
	}
	return invalid("url", "Nothing is sent to %s, which is no public address. The server sends there when it is started with --allow-webhook-prefix %s", u.Hostname(), PrefixOf(addressOf(u.Hostname())))
}

func (s *Service) refuses(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761
		return s.opt.RefusedAddress(netip.AddrFrom4([4]byte{127, 0, 0, 1})) && s.opt.RefusedAddress(netip.IPv6Loopback())
	}
	address, err := netip.ParseAddr(host)
	return err == nil && s.opt.RefusedAddress(address)
}

// addressOf is the address that a host of a URL is, or stands for: one that is no address is localhost.
func addressOf(host string) netip.Addr {
	if address, err := netip.ParseAddr(host); err == nil {
		return address
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// PrefixOf is the network that allows a refused address: this machine's own, or the single address.
func PrefixOf(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	if address.Is4() && address.IsLoopback() {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8)
	}
	return netip.PrefixFrom(address, address.BitLen())
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
		case CheckEventType(t) != nil:
			unknown = append(unknown, t)
		case !slices.Contains(out, t):
			out = append(out, t)
		}
	}
	if unknown != nil {
		return nil, unknownEventTypes(unknown)
	}
	return out, nil
}

// CheckEventType says why a webhook cannot ask for events of that type.
func CheckEventType(t string) *Error {
	if t == "*" || isEventType(t) {
		return nil
	}
	return unknownEventTypes([]string{t})
}

func unknownEventTypes(unknown []string) *Error {
	return &Error{Kind: Invalid, Type: "invalid_event_types", Data: map[string]any{"invalid_event_types": unknown},
		Message: fmt.Sprintf("No such event type: %s. \"*\" stands for all; the documentation lists the others.", strings.Join(unknown, ", "))}
}

func (s *Service) toWebhook(r dbsqlc.Webhook) (Webhook, error) {
	secret, err := s.keys.Open(secretPlace(r.WebhookID), r.SecretSealed)
	if err != nil {
		return Webhook{}, fmt.Errorf("open the secret of webhook %s: %w", r.WebhookID, err)
	}
	return Webhook{ID: r.WebhookID, URL: r.Url, EventTypes: r.EventTypes, Secret: string(secret), DisabledAt: r.DisabledAt, DisabledReason: text(r.DisabledReason)}, nil
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
	r, err := s.db.GetWebhook(ctx, dbsqlc.GetWebhookParams{WorkspaceID: p.WorkspaceID, WebhookID: parsed})
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
	n, err := s.db.UpdateWebhook(ctx, dbsqlc.UpdateWebhookParams{WorkspaceID: p.WorkspaceID, WebhookID: parsed, EventTypes: types})
	if err != nil {
		return fmt.Errorf("update the webhook: %w", err)
	}
	if n == 0 {
		return webhookNotFound(id)
	}
	return nil
}

// deletedAtOnce is how many deliveries of a webhook are deleted in one transaction.
const deletedAtOnce = 2_000

// DeleteWebhook ends a webhook. It fails with NotFound. One with more deliveries loses these first, a part at a time: whoever gives up
// meanwhile goes on with the next try, and the hand-out of events, for which the webhook is locked, waits for no more than a part.
func (s *Service) DeleteWebhook(ctx context.Context, p Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return webhookNotFound(id)
	}
	for {
		n, err := s.db.DeleteWebhook(ctx, dbsqlc.DeleteWebhookParams{WorkspaceID: p.WorkspaceID, WebhookID: parsed, MaxDeliveries: deletedAtOnce})
		if err != nil {
			return fmt.Errorf("delete the webhook: %w", err)
		}
		if n > 0 {
			return nil
		}
		dropped, err := s.dropDeliveries(ctx, p, parsed)
		if err != nil {
			return fmt.Errorf("delete deliveries of the webhook: %w", err)
		}
		if dropped == 0 {
			return webhookNotFound(id)
		}
	}
}

// dropDeliveries deletes a part of a webhook's history. It is no act by itself: the audit log tells of the webhook's end, once that is reached.
func (s *Service) dropDeliveries(ctx context.Context, p Principal, webhook uuid.UUID) (dropped int, err error) {
	err = s.db.InTx(Unasked(ctx), func(tx store.Tx) error {
		events, err := tx.SomeDeliveries(ctx, dbsqlc.SomeDeliveriesParams{WebhookID: webhook, WorkspaceID: p.WorkspaceID, MaxRows: deletedAtOnce})
		if dropped = len(events); err != nil || dropped == 0 {
			return err
		}
		// The deliveries are first, which keeps others from adding to their attempts.
		if err := tx.DropDeliveriesOf(ctx, dbsqlc.DropDeliveriesOfParams{WebhookID: webhook, EventIds: events}); err != nil {
			return err
		}
		return tx.DropAttemptsOf(ctx, dbsqlc.DropAttemptsOfParams{WebhookID: webhook, EventIds: events})
	})
	return dropped, err
}
