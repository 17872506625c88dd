package webhook

import "context"

// dropAudit removes what is too old in the audit log, of all workspaces: also of those that are gone, or none.
func (l retentionLane) dropAudit(ctx context.Context) error {
	if l.opt.AuditRetention <= 0 {
		return nil
	}
	dropped, err := l.access.DropOldAudit(ctx, l.opt.AuditRetention, func() bool { return !l.stopping.Load() })
	if dropped > 0 {
		l.opt.Log.Info("old entries of the audit log are removed", "entries", dropped)
	}
	return err
}
