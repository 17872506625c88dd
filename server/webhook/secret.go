package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DropOldSecrets deletes the rotated webhook secrets whose overlap has ended at a time.
func (s *Service) DropOldSecrets(ctx context.Context, workspace uuid.UUID, at time.Time) error {
	if _, err := s.db.DropOldSecrets(ctx, dbsqlc.DropOldSecretsParams{WorkspaceID: workspace, At: at}); err != nil {
		return fmt.Errorf("delete old secrets of workspace %s: %w", workspace, err)
	}
	return nil
}

func oldSecretPlace(id uuid.UUID) string { return "webhooks.old_secret/" + id.String() }

const (
	// DefaultOverlap is how long an old secret continues to sign unless the caller says otherwise.
	DefaultOverlap = 24 * time.Hour
	// MaxOverlap is how long an old secret may continue to sign.
	MaxOverlap = 30 * 24 * time.Hour
)

// RotateSecret gives a webhook a new secret, which signs from now on. The old secret also signs for the
// overlap, so that receivers can switch over. Then it is deleted. Without an overlap it ends immediately.
// RotateSecret returns the webhook with its new secret and the time when the old one ends. It fails with
// Invalid for an invalid overlap, with NotFound, and with Conflict while the secret of an earlier rotation
// still signs.
func (s *Service) RotateSecret(
	ctx context.Context,
	p domain.Principal,
	webhook string,
	overlap time.Duration,
) (w Webhook, until *time.Time, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return w, nil, domain.Invalidf(
			"overlap",
			"The overlap must be between 0 and %d days",
			int(MaxOverlap.Hours()/24),
		)
	}
	id, err := uuid.Parse(webhook)
	if err != nil {
		return w, nil, webhookNotFound(webhook)
	}
	err = s.onWebhook(ctx, p, id, func(tx store.Tx, row dbsqlc.Webhook) (err error) {
		if overlap > 0 && row.OldSecretUntil != nil && row.OldSecretUntil.After(s.opt.Now()) {
			return &domain.Error{Kind: domain.Conflict, Type: "rotation_in_progress", Message: fmt.Sprintf(
				"The previous secret signs until %s. Rotate again after that, or without an overlap, which "+
					"ends both immediately.",
				row.OldSecretUntil.UTC().Format(time.RFC3339),
			)}
		}
		if w, err = s.toWebhook(row); err != nil {
			return err
		}
		arg := dbsqlc.RotateWebhookSecretParams{WebhookID: id, Overlap: overlap, OldSecretSealed: []byte{}}
		if overlap > 0 {
			arg.OldSecretSealed = s.keys.Seal(oldSecretPlace(id), []byte(w.Secret))
		}
		w.Secret = newSecret()
		arg.SecretSealed = s.keys.Seal(secretPlace(id), []byte(w.Secret))
		if until, err = tx.RotateWebhookSecret(ctx, arg); err != nil || until == nil {
			return err
		}
		return tx.AdvanceRetention(ctx, dbsqlc.AdvanceRetentionParams{WorkspaceID: p.WorkspaceID, At: *until})
	})
	if err != nil {
		return Webhook{}, nil, fmt.Errorf("rotate the secret: %w", err)
	}
	return w, until, nil
}
