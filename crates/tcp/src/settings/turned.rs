//! Application of a scenario's overrides to a profile's switches.

use super::{Overrides, Problem, Recovery, RecoveryPace, Settings};

impl Settings {
    /// Returns these switches with the overrides of a scenario.
    ///
    /// # Errors
    /// If a value is out of range, contradicts another, or requests a combination that is not
    /// modelled.
    pub fn with(&self, over: &Overrides) -> Result<Self, Problem> {
        let mut s = self.clone();
        s.set(over);
        if let Some(mss) = over.mss {
            s.mss = u32::try_from(mss.get()).unwrap_or(u32::MAX);
        }
        if over.max_dupthresh.is_none() {
            s.max_dupthresh = self.max_dupthresh;
            s.dupthresh = self.dupthresh;
            s.set_dupthresh(over.dupthresh.unwrap_or(self.dupthresh));
        }
        if let Some(choice) = &over.reordering {
            s.take_remedy(choice, over)?;
        }
        if let Some(rack) = over.rack {
            if over.recovery.is_some() && rack != (s.recovery == Recovery::Rack) {
                return Err(Problem {
                    field: "rack",
                    message: "contradicts recovery, which selects the loss detection".to_owned(),
                });
            }
            if rack {
                s.recovery = Recovery::Rack;
            } else if s.recovery == Recovery::Rack {
                s.recovery = Recovery::Rfc6675;
            }
        }
        if let Some(prr) = over.prr {
            if over.recovery_pace.is_some() && prr != (s.recovery_pace == RecoveryPace::Prr) {
                return Err(Problem {
                    field: "prr",
                    message: "contradicts recovery_pace".to_owned(),
                });
            }
            if prr {
                s.recovery_pace = RecoveryPace::Prr;
            } else if s.recovery_pace == RecoveryPace::Prr {
                s.recovery_pace = RecoveryPace::Pipe;
            }
        }
        // A switch that needs one turned off is turned off too, unless the scenario sets it.
        if over.sack == Some(false) {
            if over.recovery.is_none() && over.rack != Some(true) && s.recovery.needs_sack() {
                s.recovery = Recovery::NewReno;
            }
            s.dsack = over.dsack.unwrap_or(false);
        }
        if over.timestamps == Some(false) {
            s.eifel = over.eifel.unwrap_or(false);
        }
        if s.recovery != Recovery::Rack {
            s.tlp = over.tlp.unwrap_or(false);
        }
        if over.recovery_pace.is_none()
            && over.prr != Some(true)
            && !s.recovery.permits(s.recovery_pace)
        {
            s.recovery_pace = RecoveryPace::Pipe;
        }
        s.check().map_err(|problem| match problem.field {
            // Named as in the scenario.
            "recovery" if over.recovery.is_none() && over.rack.is_some() => Problem {
                field: "rack",
                ..problem
            },
            "recovery_pace" if over.recovery_pace.is_none() && over.prr.is_some() => Problem {
                field: "prr",
                ..problem
            },
            _ => problem,
        })?;
        Ok(s)
    }
}
