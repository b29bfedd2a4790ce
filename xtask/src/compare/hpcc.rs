//! The HPC Challenge program `hpcc` as Debian ships it: HPL and the MPI version of RandomAccess from one input.

use super::results::Figure;

const ORDER: usize = 4096;
const BLOCK: usize = 128;
/// Words of RandomAccess's table, which hpcc derives from the order: the power of two that fills the matrix's memory.
const WORDS: f64 = 16_777_216.0;

/// `hpccinf.txt` for one matrix on a 1 x 2 grid; the comments are HPL's own format.
pub fn input() -> String {
    format!(
        "HPLinpack benchmark input file
one matrix on two processes
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{ORDER}         Ns
1            # of NBs
{BLOCK}          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"
    )
}

/// The best rate of HPL in `hpccoutf.txt` in GFLOP/s, if it found its own residual small enough.
pub fn linpack(output: &str) -> Result<Figure, String> {
    if !output.lines().any(|line| line.starts_with("||Ax-b||") && line.contains("PASSED")) {
        return Err("hpcc: HPL did not pass its residual test".to_owned());
    }
    // T/V  N  NB  P  Q  time  Gflops
    let rates = output.lines().filter(|line| line.starts_with("WR")).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if fields.len() == 7 { fields[6].parse::<f64>().ok() } else { None }
    });
    match rates.max_by(f64::total_cmp) {
        Some(value) => Ok(Figure { op: "lu".to_owned(), shape: ORDER.to_string(), value }),
        None => Err("hpcc: no line of HPL's results".to_owned()),
    }
}

/// The rate of MPI RandomAccess in `hpccoutf.txt` in 10^9 updates a second, if no word was wrong.
pub fn random_access(output: &str) -> Result<Figure, String> {
    let number = |key: &str| -> Option<f64> {
        let line = output.lines().find_map(|line| line.strip_prefix("MPIRandomAccess_")?.strip_prefix(key));
        line?.strip_prefix('=')?.trim().parse().ok()
    };
    match (number("N"), number("Errors"), number("GUPs")) {
        (Some(WORDS), Some(0.0), Some(value)) if value > 0.0 => {
            Ok(Figure { op: "random_access".to_owned(), shape: "2^24".to_owned(), value })
        }
        (Some(words), Some(errors), Some(_)) => Err(format!("hpcc: RandomAccess on {words} words with {errors} errors")),
        _ => Err("hpcc: no results of MPI RandomAccess".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_and_the_residual_minded() {
        let passed = "\
T/V                N    NB     P     Q               Time                 Gflops
WR11C2R4        4096   128     1     2               0.30              1.548e+02
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0032974 ...... PASSED
";
        assert_eq!(linpack(passed).map(|figure| figure.value), Ok(154.8));
        assert!(linpack(&passed.replace("PASSED", "FAILED")).is_err());
        assert!(linpack("").is_err());
    }

    #[test]
    fn random_access_counts_without_errors_only() {
        let passed =
            "MPIRandomAccess_LCG_GUPs=0.05\nMPIRandomAccess_N=16777216\nMPIRandomAccess_Errors=0\nMPIRandomAccess_GUPs=0.0274\n";
        assert_eq!(random_access(passed).map(|figure| figure.value), Ok(0.0274));
        assert!(random_access(&passed.replace("Errors=0", "Errors=7")).is_err());
        assert!(random_access(&passed.replace("=16777216", "=1024")).is_err());
        assert!(random_access("MPIRandomAccess_LCG_GUPs=0.05").is_err());
    }
}
