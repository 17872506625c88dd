package webhook

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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Webhook is an endpoint that receives events.
type Webhook struct {
	ID             uuid.UUID
	URL            string
	EventTypes     []string   // "*" means all
	Secret         string     // whsec_ and base64, as in Standard Webhooks
	DisabledAt     *time.Time // since when nothing is sent; nil: enabled
	DisabledReason string
	LastSuccess    *time.Time // when the endpoint last accepted an event, accurate to successAccuracy; nil: unknown
	FailingSince   *time.Time // all attempts since then failed; nil: the last one succeeded
	Failures       int        // consecutive failed attempts
	// Waiting is how many events wait to be sent. Of a disabled webhook, it also counts those that a replay sends. At
	// most MaxWaiting are counted.
	Waiting int
}

// MaxWaiting is the maximum of Webhook.Waiting, so that its cost does not depend on the backlog.
const MaxWaiting = 1000

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

// CreateWebhook creates a webhook. nil types means all event types. It fails with Invalid for an invalid URL or
// event type, and where the workspace has the maximum number of webhooks.
func (s *Service) CreateWebhook(
	ctx context.Context,
	p domain.Principal,
	address string,
	types []string,
) (Webhook, error) {
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
	w := Webhook{
		ID:         domain.NewID(),
		URL:        address,
		EventTypes: types,
		Secret:     newSecret(),
	}
	err = s.db.InsertWebhook(ctx, dbsqlc.InsertWebhookParams{
		WebhookID:    w.ID,
		WorkspaceID:  p.WorkspaceID,
		Url:          w.URL,
		EventTypes:   w.EventTypes,
		SecretSealed: s.keys.Seal(secretPlace(w.ID), []byte(w.Secret)),
	})
	if err != nil {
		return Webhook{}, fmt.Errorf("create the webhook: %w", err)
	}
	return w, nil
}

// roomForWebhook fails with Invalid where a workspace has the maximum number of webhooks. One transaction fans
// an event out to all of them, and must end before its lease does. A full workspace is not cached, because a
// deletion makes room.
func (s *Service) roomForWebhook(ctx context.Context, workspace uuid.UUID) error {
	now := s.opt.Now()
	if taken, _ := s.webhooks.Take(workspace, now); taken {
		return nil
	}
	n, err := s.db.CountWebhooks(
		ctx,
		dbsqlc.CountWebhooksParams{WorkspaceID: workspace, MaxRows: int32(min(s.opt.MaxWebhooks, 1<<30))},
	)
	if err != nil {
		return fmt.Errorf("count the webhooks: %w", err)
	}
	left := s.opt.MaxWebhooks - int(n)
	if left <= 0 {
		return domain.Invalidf(
			"",
			"The workspace has %d webhooks, which is the maximum. Delete unused ones with /webhooks/delete",
			s.opt.MaxWebhooks,
		)
	}
	s.webhooks.SetCount(workspace, left, now)
	return nil
}

// CheckWebhookURL returns an error if events cannot be sent to an address.
func CheckWebhookURL(address string) *domain.Error {
	if len(address) > maxURLLength {
		return domain.Invalidf("url", "A webhook's URL has at most %d characters", maxURLLength)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || strings.ContainsFunc(address, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		return domain.Invalidf("url", "Invalid url")
	case (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return domain.Invalidf("url", "A webhook's URL must begin with https:// or http:// and a host")
	case !isPort(u.Port()):
		return domain.Invalidf("url", "The port of a webhook's URL must be between 1 and 65535")
	case u.User != nil:
		return domain.Invalidf(
			"url",
			"A webhook's URL must not contain a user name or password. Deliveries are signed with the webhook's secret",
		)
	}
	return nil
}

// isPort reports whether a URL's port is empty or can be dialed.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || (err == nil && n > 0)
}

// checkHost rejects a literal address that the server sends nothing to. It only gives an early error: names are
// checked when they are dialed.
func (s *Service) checkHost(address string) error {
	u, err := url.Parse(address)
	if err != nil || s.opt.RefusedAddress == nil || !s.refuses(strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))) {
		return nil //nolint:nilerr // CheckWebhookURL reports it
	}
	return domain.Invalidf(
		"url",
		"The server sends nothing to %s, which is not a public address of another machine. Start it with "+
			"--allow-webhook-prefix %s to allow it",
		u.Hostname(),
		PrefixOf(addressOf(u.Hostname())),
	)
}

func (s *Service) refuses(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761
		return s.opt.RefusedAddress(netip.AddrFrom4([4]byte{127, 0, 0, 1})) &&
			s.opt.RefusedAddress(netip.IPv6Loopback())
	}
	address, err := netip.ParseAddr(host)
	return err == nil && s.opt.RefusedAddress(address)
}

// addressOf returns the address that a URL's host is. Any other host is localhost here.
func addressOf(host string) netip.Addr {
	if address, err := netip.ParseAddr(host); err == nil {
		return address
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// PrefixOf returns the network that allows a refused address: the loopback network, or the single address.
func PrefixOf(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	if address.Is4() && address.IsLoopback() {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8)
	}
	return netip.PrefixFrom(address, address.BitLen())
}

// checkEventTypes removes duplicates and keeps the order. It fails with Invalid.
func checkEventTypes(types []string) ([]string, error) {
	if len(types) == 0 {
		return nil, domain.Invalidf("event_types", "Name at least one event type, or \"*\" for all")
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

// CheckEventType returns an error if a webhook cannot subscribe to that type.
func CheckEventType(t string) *domain.Error {
	if t == "*" || event.IsEventType(t) {
		return nil
	}
	return unknownEventTypes([]string{t})
}

func unknownEventTypes(unknown []string) *domain.Error {
	return &domain.Error{
		Kind: domain.Invalid,
		Type: "invalid_event_types",
		Data: map[string]any{"invalid_event_types": unknown},
		Message: fmt.Sprintf(
			"No such event type: %s. Use \"*\" for all. The documentation lists the types.",
			strings.Join(unknown, ", "),
		),
	}
}

func (s *Service) toWebhook(r dbsqlc.Webhook) (Webhook, error) {
	secret, err := s.keys.Open(secretPlace(r.WebhookID), r.SecretSealed)
	if err != nil {
		return Webhook{}, fmt.Errorf("open the secret of webhook %s: %w", r.WebhookID, err)
	}
	w := withoutSecret(r)
	w.Secret = string(secret)
	return w, nil
}

// withoutSecret returns the webhook of a row without its secret and its waiting events.
func withoutSecret(r dbsqlc.Webhook) Webhook {
	return Webhook{
		ID:             r.WebhookID,
		URL:            r.Url,
		EventTypes:     r.EventTypes,
		DisabledAt:     r.DisabledAt,
		DisabledReason: domain.Value(r.DisabledReason),
		LastSuccess:    r.LastSuccessAt,
		FailingSince:   r.FailingSince,
		Failures:       int(r.ConsecutiveFailures),
	}
}

// countWaiting sets Waiting of webhooks. mayWait selects those that can have waiting events; most have none, and cost
// nothing.
func (s *Service) countWaiting(ctx context.Context, mayWait []uuid.UUID, set func(id uuid.UUID, waiting int)) error {
	if len(mayWait) == 0 {
		return nil
	}
	rows, err := s.db.CountWaitingEvents(ctx, dbsqlc.CountWaitingEventsParams{WebhookIds: mayWait, MaxRows: MaxWaiting})
	if err != nil {
		return fmt.Errorf("count the waiting events: %w", err)
	}
	for _, r := range rows {
		set(r.WebhookID, min(int(r.Waiting), MaxWaiting))
	}
	return nil
}

// mayWait reports whether a webhook of a workspace that is not suspended can have waiting events.
func mayWait(r dbsqlc.Webhook) bool { return r.DueAt != nil || r.DisabledAt != nil }

func webhookNotFound(id string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "webhook_not_found",
		Message: "Could not find a webhook with this webhook_id.",
		Data:    map[string]any{"webhook_id": id},
	}
}

// GetWebhook reads a webhook. It fails with NotFound.
func (s *Service) GetWebhook(ctx context.Context, p domain.Principal, id string) (Webhook, error) {
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
	w, err := s.toWebhook(r)
	if err != nil || !mayWait(r) {
		return w, err
	}
	err = s.countWaiting(ctx, []uuid.UUID{w.ID}, func(_ uuid.UUID, n int) { w.Waiting = n })
	return w, err
}

// ListWebhooks lists all webhooks, oldest first.
func (s *Service) ListWebhooks(ctx context.Context, p domain.Principal) ([]Webhook, error) {
	rows, err := s.db.ListWebhooks(ctx, p.WorkspaceID)
	if err != nil {
		return nil, fmt.Errorf("list the webhooks: %w", err)
	}
	out := make([]Webhook, len(rows))
	at, busy := map[uuid.UUID]int{}, []uuid.UUID(nil)
	for i, r := range rows {
		if out[i], err = s.toWebhook(r); err != nil {
			return nil, err
		}
		if at[r.WebhookID] = i; mayWait(r) {
			busy = append(busy, r.WebhookID)
		}
	}
	return out, s.countWaiting(ctx, busy, func(id uuid.UUID, n int) { out[at[id]].Waiting = n })
}

// UpdateWebhook changes the event types that a webhook receives. It fails with Invalid and NotFound.
func (s *Service) UpdateWebhook(ctx context.Context, p domain.Principal, id string, types []string) error {
	types, err := checkEventTypes(types)
	if err != nil {
		return err
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return webhookNotFound(id)
	}
	n, err := s.db.UpdateWebhook(
		ctx,
		dbsqlc.UpdateWebhookParams{WorkspaceID: p.WorkspaceID, WebhookID: parsed, EventTypes: types},
	)
	if err != nil {
		return fmt.Errorf("update the webhook: %w", err)
	}
	if n == 0 {
		return webhookNotFound(id)
	}
	return nil
}

// deleteBatch is how many deliveries of a webhook are deleted in one transaction.
const deleteBatch = 2_000

// DeleteWebhook deletes a webhook. It fails with NotFound. It first deletes many deliveries in batches, so that
// a retry continues where a canceled request stopped, and the fan-out waits for one batch at most.
func (s *Service) DeleteWebhook(ctx context.Context, p domain.Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return webhookNotFound(id)
	}
	for {
		n, err := s.db.DeleteWebhook(
			ctx,
			dbsqlc.DeleteWebhookParams{WorkspaceID: p.WorkspaceID, WebhookID: parsed, MaxDeliveries: deleteBatch},
		)
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

// dropDeliveries deletes a batch of a webhook's deliveries. The audit log records only the deletion of the
// webhook.
func (s *Service) dropDeliveries(ctx context.Context, p domain.Principal, webhook uuid.UUID) (dropped int, err error) {
	err = s.db.InTx(store.WithAct(ctx, nil), func(tx store.Tx) error {
		events, err := tx.ListDeliveryIDs(
			ctx,
			dbsqlc.ListDeliveryIDsParams{WebhookID: webhook, WorkspaceID: p.WorkspaceID, MaxRows: deleteBatch},
		)
		if dropped = len(events); err != nil || dropped == 0 {
			return err
		}
		// Delete the deliveries first, so that no concurrent transaction adds attempts to them.
		if err := tx.DropDeliveriesOf(
			ctx,
			dbsqlc.DropDeliveriesOfParams{WebhookID: webhook, EventIds: events},
		); err != nil {
			return err
		}
		return tx.DropAttemptsOf(ctx, dbsqlc.DropAttemptsOfParams{WebhookID: webhook, EventIds: events})
	})
	return dropped, err
}
