package webhook

import "context"

// dropAudit deletes old entries of the audit log of all workspaces, including deleted ones and
// entries without a workspace.
func (l retentionLane) dropAudit(ctx context.Context) error {
	if l.opt.AuditRetention <= 0 {
		return nil
	}
	dropped, err := l.access.DropOldAudit(ctx, l.opt.AuditRetention, func() bool { return !l.stopping.Load() })
	if dropped > 0 {
		l.opt.Log.Info("removed old entries of the audit log", "entries", dropped)
	}
	return err
}
