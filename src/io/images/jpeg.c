// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG with libjpeg-turbo. libjpeg reports errors by longjmp, so everything that changes
// after setjmp is in a struct, not in local variables.
#include "io/images/codec.h"

#ifdef TARE_HAVE_JPEG

#include <setjmp.h>
#include <stdio.h> // jpeglib.h needs FILE

#include <jerror.h>
#include <jpeglib.h>

#include "core/memory/alloc.h"

// Each scan of a progressive file processes the whole image, so a small file could take hours.
enum { MOST_SCANS = 500 };

typedef struct decoder {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    jmp_buf out_of_here;
    const unsigned char *bytes;
    size_t size;
    int64_t most_pixels;
    image made;
    uint8_t *row; // of CMYK, [width][4]
    tare_status status;
    tare_error *err;
} decoder;

static decoder *decoder_of(j_common_ptr jpeg) {
    return (decoder *)jpeg->client_data;
}

static void leave(j_common_ptr jpeg, const char *message) {
    decoder *d = decoder_of(jpeg);
    d->status = tare__fail(d->err, TARE_MALFORMED_FILE, "the JPEG is broken: %s", message);
    longjmp(d->out_of_here, 1);
}

static void leave_with_message(j_common_ptr jpeg) {
    char message[JMSG_LENGTH_MAX];
    decoder *d = decoder_of(jpeg);
    if (jpeg->err->msg_code == JERR_OUT_OF_MEMORY) {
        d->status = tare__out_of_memory(d->err);
        longjmp(d->out_of_here, 1);
    }
    jpeg->err->format_message(jpeg, message);
    leave(jpeg, message);
}

// libjpeg warns of lost data and continues with gray. Other warnings, such as bytes between
// segments, leave the image complete.
static void refuse_lost_data(j_common_ptr jpeg, int level) {
    if (level >= 0) return; // a trace
    switch (jpeg->err->msg_code) {
    case JWRN_JPEG_EOF:
        leave(jpeg, "the file ends in the middle of the picture");
        break;
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
        leave_with_message(jpeg);
        break;
    default:
        break;
    }
}

static void print_nothing(j_common_ptr jpeg) {
    (void)jpeg;
}

static void count_scans(j_common_ptr jpeg) {
    const struct jpeg_decompress_struct *d = (const struct jpeg_decompress_struct *)jpeg;
    if (d->input_scan_number > MOST_SCANS) leave(jpeg, "it has more than 500 scans");
}

static tare_status begin_picture(decoder *d) {
    struct jpeg_decompress_struct *j = &d->jpeg;
    TARE_TRY(tare__image_check_size(j->image_height, j->image_width, d->most_pixels, d->err));
    switch (j->jpeg_color_space) {
    case JCS_GRAYSCALE:
        j->out_color_space = JCS_GRAYSCALE;
        break;
    case JCS_CMYK:
    case JCS_YCCK:
        j->out_color_space = JCS_CMYK;
        d->row = tare__alloc_zeroed(j->image_width, 4);
        if (d->row == NULL) return tare__out_of_memory(d->err);
        break;
    case JCS_RGB:
    case JCS_YCbCr:
        j->out_color_space = JCS_RGB;
        break;
    default:
        return tare__fail(d->err, TARE_UNSUPPORTED, "a JPEG of %d colour components",
                          j->num_components);
    }
    const int channels = j->out_color_space == JCS_GRAYSCALE ? 1 : 3;
    return tare__image_create(j->image_height, j->image_width, channels, &d->made, d->err);
}

// a * b / 255, rounded.
static int times(int a, int b) {
    const int product = a * b + 128;
    return (product + (product >> 8)) >> 8;
}

// Adobe's inverted inks; black scales the others (Pillow's cmyk2rgb).
static void rgb_of_cmyk(const uint8_t *cmyk, int64_t width, uint8_t *out) {
    for (int64_t x = 0; x < width; x++, cmyk += 4, out += 3) {
        const int light = cmyk[3];
        for (int c = 0; c < 3; c++) {
            const int value = light - times(255 - cmyk[c], light);
            out[c] = (uint8_t)(value < 0 ? 0 : value);
        }
    }
}

static void read_rows(decoder *d) {
    const size_t row_bytes = (size_t)d->made.width * (size_t)d->made.channels;
    (void)jpeg_start_decompress(&d->jpeg);
    while (d->jpeg.output_scanline < d->jpeg.output_height) {
        uint8_t *pixels = d->made.pixels + d->jpeg.output_scanline * row_bytes;
        JSAMPROW row = d->row != NULL ? d->row : pixels;
        if (jpeg_read_scanlines(&d->jpeg, &row, 1) == 1 && d->row != NULL)
            rgb_of_cmyk(d->row, d->made.width, pixels);
    }
    (void)jpeg_finish_decompress(&d->jpeg);
}

static void run(decoder *d) {
    if (setjmp(d->out_of_here) != 0) return;
    jpeg_create_decompress(&d->jpeg); // zeroes all but err and client_data
    d->jpeg.progress = &d->progress;
    jpeg_mem_src(&d->jpeg, d->bytes, (unsigned long)d->size);
    (void)jpeg_read_header(&d->jpeg, TRUE);
    d->status = begin_picture(d);
    if (d->status == TARE_OK) read_rows(d);
}

tare_status tare__jpeg_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                              image *out, tare_error *err) {
    decoder d = {.bytes = bytes, .size = size, .most_pixels = most_pixels, .err = err};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.jpeg.client_data = &d;
    d.errors.error_exit = leave_with_message;
    d.errors.emit_message = refuse_lost_data;
    d.errors.output_message = print_nothing;
    d.progress.progress_monitor = count_scans;
    run(&d);
    jpeg_destroy_decompress(&d.jpeg);
    tare__free(d.row);
    if (d.status == TARE_OK)
        *out = d.made;
    else
        tare__image_release(&d.made);
    return d.status;
}

#else

tare_status tare__jpeg_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                              image *out, tare_error *err) {
    (void)bytes, (void)size, (void)most_pixels, (void)out;
    return tare__fail(err, TARE_UNSUPPORTED, "a JPEG, but tare was built without libjpeg");
}

#endif
