//! Cheapest plan of members for given needs, with an allowance of overloaded bins.
//!
//! Given the number of members that each bin needs, a plan sets the number that are on in each bin.
//! Its cost is the time that members are awake: a bin's length for each member that is on, and the
//! lead for each member that wakes up, which it spends awake before its bin. A bin is *overloaded*
//! if fewer members are on than it needs. The solution is the cheapest plan that overloads at most
//! a given number of bins. All members are on before the first bin.
//!
//! A plan that wakes a member after a gap shorter than the lead costs more than a plan that leaves
//! it on, so every cheapest plan is feasible.
//!
//! [`Problem::solve`] is exact: dynamic programming over bins, members that are on and bins already
//! overloaded, if the table has at most [`LARGEST`] entries (bins times members times overloaded
//! bins). Two minutes with 0.1 % and eight members have 115 million entries.
//!
//! For longer runs [`Problem::solve_by_price`] assigns a price to an overloaded bin (a Lagrange
//! multiplier) and finds the cheapest plan under it. A plan that is cheapest under some price is
//! also cheapest among the plans that overload no more bins (H. Everett, "Generalized Lagrange
//! Multiplier Method", Operations Research 11(3), 1963). There may be no price that uses the whole
//! allowance, so part of it may remain unused.

/// Input of the optimization. Times are in any one unit.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Number of members that each bin needs, 1 to `members`.
    pub needs: &'a [u32],
    /// Number of members, at most 64.
    pub members: u32,
    /// Length of a bin.
    pub bin: u64,
    /// Time awake for each wake-up.
    pub lead: u64,
}

/// A plan and its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Number of members that are on in each bin.
    pub on: Vec<u32>,
    /// Time awake of all members, without the time before the first bin.
    pub cost: u64,
    /// Number of bins with fewer members than they need.
    pub overloaded: u64,
}

/// Maximum size of the table, in entries of one octet.
pub const LARGEST: u64 = 1 << 27;

/// Accumulated cost, and overloaded bins to break ties.
type Total = (u128, u64);

impl Problem<'_> {
    /// Finds the cheapest plan that overloads at most `most` bins; exact unless the table would be
    /// larger than [`LARGEST`].
    #[must_use]
    pub fn solve(&self, most: u64) -> Plan {
        let entries = (self.needs.len() as u64)
            .saturating_mul(u64::from(self.members))
            .saturating_mul(most.saturating_add(1));
        match usize::try_from(most) {
            Ok(most) if entries <= LARGEST => self.solve_exactly(most),
            _ => self.solve_by_price(most),
        }
    }

    /// Solves with a table of bins, bins already overloaded and members that are on.
    fn solve_exactly(&self, most: usize) -> Plan {
        const NOWHERE: u64 = u64::MAX;
        let count = self.members as usize;
        let row = count * (most + 1);
        let mut best = vec![NOWHERE; row];
        best[count - 1] = 0;
        let mut next = vec![NOWHERE; row];
        // For each entry: the number of members that are on in the previous bin, minus one.
        let mut before = vec![0_u8; row * self.needs.len()];
        for (k, &need) in self.needs.iter().enumerate() {
            next.fill(NOWHERE);
            let back = &mut before[k * row..(k + 1) * row];
            for used in 0..=most {
                let best = &best[used * count..][..count];
                let (mut from, mut total) = (0, NOWHERE);
                // From fewer members, each that wakes up costs the lead; from more, members leave
                // at no cost.
                let mut reached = [(NOWHERE, 0); 64];
                for on in 0..count {
                    total = total.saturating_add(self.lead);
                    if best[on] < total {
                        (from, total) = (on, best[on]);
                    }
                    reached[on] = (total, from);
                }
                let (mut from, mut total) = (0, NOWHERE);
                for on in (0..count).rev() {
                    if best[on] < total {
                        (from, total) = (on, best[on]);
                    }
                    if total < reached[on].0 {
                        reached[on] = (total, from);
                    }
                }
                for (on, (total, from)) in reached[..count].iter().enumerate() {
                    let used = used + usize::from(on + 1 < need as usize);
                    if *total == NOWHERE || used > most {
                        continue;
                    }
                    let place = used * count + on;
                    next[place] = total + (on as u64 + 1) * self.bin;
                    back[place] = narrow(*from);
                }
            }
            std::mem::swap(&mut best, &mut next);
        }
        let mut place = (0..row).min_by_key(|place| best[*place]).unwrap_or(0);
        let mut on = vec![1; self.needs.len()];
        for k in (0..self.needs.len()).rev() {
            let (used, state) = (place / count, place % count);
            on[k] = u32::try_from(state).expect("64 members at most") + 1;
            let used = used - usize::from(on[k] < self.needs[k]);
            place = used * count + usize::from(before[k * row + place]);
        }
        self.plan(on)
    }

    /// Finds the cheapest plan under a price that overloads at most `most` bins.
    #[must_use]
    pub fn solve_by_price(&self, most: u64) -> Plan {
        // Above this price no run of overloaded bins pays off.
        let enough = u64::from(self.members) * (self.bin + self.lead) + 1;
        let safe = self.priced(enough);
        if most == 0 {
            return safe;
        }
        let free = self.priced(0);
        if free.overloaded <= most {
            return free;
        }
        let (mut low, mut high, mut best) = (0, enough, safe);
        while high - low > 1 {
            let price = low.midpoint(high);
            let plan = self.priced(price);
            if plan.overloaded <= most {
                (high, best) = (price, plan);
            } else {
                low = price;
            }
        }
        best
    }

    /// Finds the cheapest plan if bins may be overloaded at this price.
    fn priced(&self, price: u64) -> Plan {
        let count = self.members as usize;
        let nowhere: Total = (u128::MAX, u64::MAX);
        let mut best = vec![nowhere; count];
        if let Some(all) = best.last_mut() {
            *all = (0, 0);
        }
        // By bin and members that are on in it, minus one: the number in the previous bin.
        let mut before: Vec<u8> = vec![0; count * self.needs.len()];
        for (k, &need) in self.needs.iter().enumerate() {
            let row = &mut before[k * count..(k + 1) * count];
            // From more members, members leave at no cost; from fewer, each costs the lead.
            let (mut from, mut total) = (count - 1, nowhere);
            let mut next = vec![nowhere; count];
            for on in (0..count).rev() {
                if best[on] < total {
                    (from, total) = (on, best[on]);
                }
                (next[on], row[on]) = (total, narrow(from));
            }
            let (mut from, mut total) = (0, nowhere);
            for on in 0..count {
                if total != nowhere {
                    total.0 += u128::from(self.lead);
                }
                if total < next[on] {
                    (next[on], row[on]) = (total, narrow(from));
                }
                if best[on] < total {
                    (from, total) = (on, best[on]);
                }
            }
            for (on, total) in (1_u32..).zip(&mut next) {
                total.0 += u128::from(on) * u128::from(self.bin);
                if on < need {
                    total.0 += u128::from(price);
                    total.1 += 1;
                }
            }
            best = next;
        }
        let mut on = vec![1; self.needs.len()];
        let last = (0..count).min_by_key(|on| best[*on]).unwrap_or(0);
        let mut state = last;
        for k in (0..self.needs.len()).rev() {
            on[k] = u32::try_from(state).expect("64 members at most") + 1;
            state = usize::from(before[k * count + state]);
        }
        self.plan(on)
    }

    /// Cost and overloaded bins of a plan.
    #[must_use]
    pub fn plan(&self, on: Vec<u32>) -> Plan {
        let mut previous = self.members;
        let (mut cost, mut overloaded) = (0, 0);
        for (&now, &need) in on.iter().zip(self.needs) {
            let woken = now.saturating_sub(previous);
            cost += u64::from(now) * self.bin + u64::from(woken) * self.lead;
            overloaded += u64::from(now < need);
            previous = now;
        }
        Plan {
            on,
            cost,
            overloaded,
        }
    }
}

fn narrow(members: usize) -> u8 {
    u8::try_from(members).expect("64 members at most")
}
